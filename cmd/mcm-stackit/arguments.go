// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"

	apisvalidation "github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// checkArguments refuses flags that were given without a value, as by --secret "$UNSET":
// what they were to name would be left out. It also refuses the content of a file, in flags,
// words and $KUBECONFIG: errors would repeat it. The template of -o may be long.
func (o *options) checkArguments(flags *pflag.FlagSet, words []string) error {
	var errs []error
	flags.Visit(func(flag *pflag.Flag) {
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		switch {
		case len(values) == 0 || slices.Contains(values, ""):
			errs = append(errs, wrongUsage("--%s is empty: give it a value, or leave it out", flag.Name))
		case flag.Name != "token" && flag.Name != "output" && slices.ContainsFunc(values, isContent):
			errs = append(errs, contentError("--"+flag.Name))
		}
	})
	kubeconfig, _ := o.lookup(clientcmd.RecommendedConfigPathEnvVar)
	if slices.ContainsFunc(filepath.SplitList(kubeconfig), isContent) {
		errs = append(errs, contentError("$"+clientcmd.RecommendedConfigPathEnvVar))
	}
	if slices.ContainsFunc(words, isContent) {
		errs = append(errs, contentError("an argument"))
	}
	if len(errs) > 0 {
		return errs[0]
	}
	return nil
}

// complete checks the flags, and reads the environment.
func (o *options) complete() error {
	o.config, o.configError = spi.ConfigFromEnvironment(o.lookup)
	o.config.TokenHosts, o.config.IdentityDirs = o.tokenHosts, o.identityDirs
	var err error
	if o.requestTimeout, err = clientcmd.ParseTimeout(*o.control.Timeout); err != nil || o.requestTimeout < 0 {
		return wrongUsage("--%s is %q, must be a time with its unit, such as 10s, or 0", flagRequestTimeout, *o.control.Timeout)
	}
	return o.checkNames()
}

// checkNames refuses values that can name nothing. They are not repeated: a value in a wrong
// place may be a secret.
func (o *options) checkNames() error {
	switch namespace := *o.control.Namespace; {
	case namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0:
		return wrongUsage("--namespace must be the name of a namespace: lower case letters, digits and -")
	case !isObjectName(o.secret):
		return wrongUsage("--secret must be the name of a Secret, or namespace/name")
	case o.projectID != "" && !apisvalidation.IsUUID(o.projectID):
		return wrongUsage("--project-id must be a UUID in lower case")
	case o.region != "" && len(apisvalidation.ValidateRegion(o.region, nil)) > 0:
		return wrongUsage("--region must be a region such as eu01")
	case spi.CheckTokenHosts(o.tokenHosts) != nil:
		return wrongUsage("--%s must be hosts in lower case, with commas between them, such as %s", spi.FlagTokenHosts, spi.DefaultTokenHosts)
	case spi.CheckIdentityDirs(o.identityDirs) != nil:
		return wrongUsage("--%s must be whole paths of folders, with commas between them, such as %s", spi.FlagIdentityDirs, spi.DefaultIdentityDirs)
	}
	return nil
}

// isObjectName says whether a value is "name" or "namespace/name"; "" is not set.
func isObjectName(value string) bool {
	namespace, name, ok := strings.Cut(value, "/")
	if !ok {
		namespace, name = metav1.NamespaceDefault, value
	}
	return value == "" || len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(name)) == 0
}
