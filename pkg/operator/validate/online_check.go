// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/manifest"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// onlineCheck asks the API for what one class names.
type onlineCheck struct {
	*validator
	*classCheck
	catalogue *catalogue
	spec      *apis.ProviderSpec
	// machineType is nil if it is not known.
	machineType *iaas.MachineType
	// newVolume is the size of the boot volume that is made for a machine, in GB; 0 if
	// none is made or it is not known.
	newVolume int64
	// gaveUp says that an outage was reported for the class.
	gaveUp bool
}

// named asks for a thing that the class names by its ID, and reports whether it is there.
func named[T any](ctx context.Context, k *onlineCheck, path string, read account.APIRead[*T], id string) (*T, bool) {
	value, err := ask(ctx, k.catalogue, read, id)
	return value, k.isThere(path, read.What+" "+id, read.Permission, err)
}

// isThere reports whether a thing that the class names is there, and says so.
func (k *onlineCheck) isThere(path, thing, permission string, err error) bool {
	path = "providerSpec." + path
	switch {
	case err == nil:
		k.fine(k.object, path, thing+" is there")
		return true
	case provider.IsNotFound(err):
		k.wrong(k.object, path, thing+" is not there", k.checkPlace())
	default:
		k.failed(path, thing, permission, err)
	}
	return false
}

// available is the state of images, snapshots and volumes that can be used.
const available = "AVAILABLE"

// isAvailable reports a thing that cannot be used as it is.
func (k *onlineCheck) isAvailable(path, thing, status string) bool {
	if status == available {
		return true
	}
	k.wrong(k.object, "providerSpec."+path, fmt.Sprintf("%s is in state %s", thing, report.Quoted(status)), "must be "+available)
	return false
}

// didYouMean is the remedy for a name that the API does not have.
func (k *onlineCheck) didYouMean(name string, names []string) string {
	if near := manifest.Nearest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return k.checkPlace()
}

func (k *onlineCheck) checkPlace() string {
	return fmt.Sprintf("must be one that project %s can use in region %s", k.catalogue.account.Session.ProjectID, k.catalogue.account.Region)
}

// failed reports a thing that the API did not tell of. An outage is reported once.
func (k *onlineCheck) failed(path, thing, permission string, err error) {
	if k.gaveUp {
		return
	}
	if k.catalogue.outage != nil {
		k.gaveUp = true
		_, text := provider.Classify(err)
		k.unknown(k.object, "", "could not be checked online any further: "+text, "")
		return
	}
	found, remedy := couldNotTell(thing, permission, err)
	k.unknown(k.object, path, found, remedy)
}

// couldNotTell says why the API does not tell of a thing.
func couldNotTell(thing, permission string, err error) (found, remedy string) {
	var api *provider.APIError
	if errors.As(err, &api) && api.StatusCode == http.StatusForbidden && permission != "" {
		return thing + " could not be checked: the service account may not read it", "grant it the permission " + permission
	}
	_, text := provider.Classify(err)
	return thing + " could not be checked: " + text, ""
}
