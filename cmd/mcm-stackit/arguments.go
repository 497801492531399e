// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

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
	direct.KeyPath = value("service-account-key-path", o.keyPath, envKeyPath)
	direct.Origin = strings.Join(origins, ", ")
	if direct.ProjectID == "" || direct.Region == "" || direct.KeyPath == "" && !o.config.NoAuth {
		return nil
	}
	return direct
}

// checkNames refuses values that can name nothing. They are not repeated: a value in a wrong
// place may be a secret.
func (o *options) checkNames() error {
	switch {
	case o.projectID != "" && !validation.IsUUID(o.projectID):
		return wrongUsage("--project-id must be a UUID in lower case")
	case o.region != "" && len(validation.ValidateRegion(o.region, nil)) > 0:
		return wrongUsage("--region must be a region such as eu01")
	case spi.CheckTokenHosts(o.tokenHosts) != nil:
		return wrongUsage("--%s must be hosts in lower case, with commas between them, such as %s", spi.FlagTokenHosts, spi.DefaultTokenHosts)
	case spi.CheckIdentityDirs(o.identityDirs) != nil:
		return wrongUsage("--%s must be whole paths of folders, with commas between them, such as %s", spi.FlagIdentityDirs, spi.DefaultIdentityDirs)
	}
	return nil
}
