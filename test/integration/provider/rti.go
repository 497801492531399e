// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package provider tells the integration suite of machine-controller-manager (MCM)
// what a run has left in the cloud. It looks with the driver's own client and
// credentials, so it works with the mock and with STACKIT alike.
package provider

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/test/integration/common/helpers"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// ClusterLabel is the key by which the class of the suite says whose its servers
// are. Its value is the suite's TARGET_CLUSTER_NAME.
const ClusterLabel = "kubernetes.io/cluster"

// limit is for one look at the cloud.
const limit = time.Minute

// ResourcesTrackerImpl finds servers, NICs and volumes that a run of the suite left.
// Servers are found by the cluster label. The cloud does not label the NICs and
// volumes that it makes for a server: all that did not exist before the run count,
// so nothing else may create any in the project meanwhile.
type ResourcesTrackerImpl struct {
	api               iaas.DefaultAPI
	projectID, region string
	cluster           string
	before            []resource
}

var _ helpers.ResourcesTrackerInterface = (*ResourcesTrackerImpl)(nil)

// resource is one thing of the cloud, such as "NIC" and its ID.
type resource struct{ kind, id string }

// InitializeResourcesTracker takes note of what the cloud holds before the run. It
// fails if a server of the cluster is there already: it would be taken for one that
// the run has left. machineClass and secretData are what the driver gets;
// clusterName is the value of ClusterLabel that the class must set.
func (r *ResourcesTrackerImpl) InitializeResourcesTracker(
	machineClass *v1alpha1.MachineClass, secretData map[string][]byte, clusterName string,
) error {
	if err := r.connect(machineClass, secretData, clusterName); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	servers, err := r.servers(ctx)
	if err != nil {
		return err
	}
	if len(servers) > 0 {
		return fmt.Errorf("the cluster %s has servers before the run: %v", clusterName, servers)
	}
	r.before, err = r.attachments(ctx)
	return err
}

func (r *ResourcesTrackerImpl) connect(
	class *v1alpha1.MachineClass, secretData map[string][]byte, clusterName string,
) error {
	secret, wrong := apis.DecodeSecret(secretData)
	spec, _, wrongSpec := apis.DecodeProviderSpec(class.ProviderSpec.Raw)
	if wrong = append(wrong, wrongSpec...); len(wrong) > 0 {
		return wrong.ToAggregate()
	}
	apis.SetDefaults(spec, secret)
	if clusterName == "" || spec.Labels[ClusterLabel] != clusterName {
		return fmt.Errorf("the label %s of class %s is %q, the cluster is %q: its servers could not be found",
			ClusterLabel, class.Name, spec.Labels[ClusterLabel], clusterName)
	}
	config, err := spi.ConfigFromEnvironment(os.LookupEnv)
	if err != nil {
		return err
	}
	sessions := &spi.PluginSPIImpl{Config: config}
	session, err := sessions.Session(
		spi.Credentials{ProjectID: secret.ProjectID, ServiceAccountKey: secret.ServiceAccountKey})
	if err != nil {
		return err
	}
	r.api, r.projectID, r.region, r.cluster = session.API, session.ProjectID, spec.Region, clusterName
	return nil
}

// IsOrphanedResourcesAvailable reports whether a resource of the run is left, and logs
// it. It also returns true when the cloud does not answer: nothing is then known to be
// gone.
func (r *ResourcesTrackerImpl) IsOrphanedResourcesAvailable() bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	left, err := r.orphans(ctx)
	if err != nil {
		log.Printf("Orphans: %v", err)
		return true
	}
	for _, orphan := range left {
		log.Printf("Orphans: %s %s is left", orphan.kind, orphan.id)
	}
	return len(left) > 0
}

func (r *ResourcesTrackerImpl) orphans(ctx context.Context) ([]resource, error) {
	servers, err := r.servers(ctx)
	if err != nil {
		return nil, err
	}
	attachments, err := r.attachments(ctx)
	if err != nil {
		return nil, err
	}
	return append(servers, slices.DeleteFunc(attachments, func(found resource) bool {
		return slices.Contains(r.before, found)
	})...), nil
}

// errNoList: an empty answer decodes without an error, and must not pass for
// "nothing left".
var errNoList = errors.New("the answer has no list")

// servers of the cluster, those that are being deleted included.
func (r *ResourcesTrackerImpl) servers(ctx context.Context) ([]resource, error) {
	list, err := r.api.ListServers(ctx, r.projectID, r.region).LabelSelector(ClusterLabel + "=" + r.cluster).Execute()
	if err == nil && list.Items == nil {
		err = errNoList
	}
	if err != nil {
		return nil, fmt.Errorf("listing servers: %w", err)
	}
	var found []resource
	for i := range list.Items {
		found = append(found, resource{"server", list.Items[i].GetId()})
	}
	return found, nil
}

// attachments are all NICs and volumes of the project in the region.
func (r *ResourcesTrackerImpl) attachments(ctx context.Context) ([]resource, error) {
	nics, err := r.api.ListProjectNICs(ctx, r.projectID, r.region).Execute()
	if err == nil && nics.Items == nil {
		err = errNoList
	}
	if err != nil {
		return nil, fmt.Errorf("listing NICs: %w", err)
	}
	volumes, err := r.api.ListVolumes(ctx, r.projectID, r.region).Execute()
	if err == nil && volumes.Items == nil {
		err = errNoList
	}
	if err != nil {
		return nil, fmt.Errorf("listing volumes: %w", err)
	}
	var found []resource
	for i := range nics.Items {
		found = append(found, resource{"NIC", nics.Items[i].GetId()})
	}
	for i := range volumes.Items {
		found = append(found, resource{"volume", volumes.Items[i].GetId()})
	}
	return found, nil
}
