// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	apisvalidation "github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// checkArguments refuses flags that were given without a value, as by --secret "$UNSET":
// what they were to name would be left out.
func checkArguments(flags *pflag.FlagSet) error {
	var errs []error
	flags.Visit(func(flag *pflag.Flag) {
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if len(values) == 0 || slices.Contains(values, "") {
			errs = append(errs, wrongUsage("--%s is empty: give it a value, or leave it out", flag.Name))
		}
	})
	return cmp.Or(errs...)
}

// complete checks the flags, and reads the environment.
func (o *options) complete() error {
	o.config, o.configError = spi.ConfigFromEnvironment(o.lookup)
	o.config.TokenHosts, o.config.IdentityDirs = o.tokenHosts, o.identityDirs
	var err error
	if o.requestTimeout, err = clientcmd.ParseTimeout(*o.control.Timeout); err != nil || o.requestTimeout < 0 {
		return wrongUsage("--%s is %q, must be a time with its unit, such as 10s, or 0", flagRequestTimeout, *o.control.Timeout)
	}
	if err := o.checkNames(); err != nil {
		return err
	}
	return o.checkDirect()
}

// checkDirect refuses half of what names an account without a Secret, and both.
func (o *options) checkDirect() error {
	given := o.projectID != "" || o.keyPath != ""
	switch {
	case given && o.secret != "":
		return wrongUsage("--secret goes without --project-id and --service-account-key-path")
	case given && o.direct() == nil:
		return wrongUsage("credentials without a Secret need all of %s", account.AllThree)
	}
	return nil
}

// direct are the credentials that flags and variables name; nil if they do not name all.
func (o *options) direct() *account.Direct {
	var origins []string
	value := func(flag, given, variable string) string {
		origin := "--" + flag
		if given == "" {
			origin = "$" + variable
			given, _ = o.lookup(variable)
		}
		origins = append(origins, origin)
		return given
	}
	direct := &account.Direct{ProjectID: value("project-id", o.projectID, envProjectID), Region: value("region", o.region, envRegion)}
	if path := value("service-account-key-path", o.keyPath, envKeyPath); path != "" {
		direct.Key = func() (string, error) { return readKey(path) }
	}
	direct.Origin = strings.Join(origins, ", ")
	if direct.ProjectID == "" || direct.Region == "" || direct.Key == nil && !o.config.NoAuth {
		return nil
	}
	return direct
}

// maxKey is more than a service-account key may have (pkg/spi).
const maxKey = 64 << 10

func readKey(path string) (string, error) {
	file, err := os.Open(path) //nolint:gosec // the user names it
	if err != nil {
		return "", fmt.Errorf("reading the service-account key: %w", err)
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxKey))
	if err != nil {
		return "", fmt.Errorf("reading the service-account key: %w", err)
	}
	if len(content) == 0 {
		return "", fmt.Errorf("reading the service-account key: %s is empty", path)
	}
	return string(content), nil
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
