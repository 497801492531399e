// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package provider lists, for the integration suite of machine-controller-manager
// (MCM), the resources that a run has left in the cloud. It uses the driver's own
// client and credentials, so it works with the mock and with STACKIT alike.
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

// ClusterLabel is the key of the label by which the tracker finds the servers of a
// cluster. The suite's MachineClass sets it to the suite's TARGET_CLUSTER_NAME.
const ClusterLabel = "kubernetes.io/cluster"

// limit is the maximum time for reading the cloud's resources once.
const limit = time.Minute

// ResourcesTrackerImpl finds servers, NICs and volumes that a run of the suite left.
// It finds servers by ClusterLabel. The cloud does not label the NICs and volumes that
// it creates for a server, so the tracker counts every NIC and volume of the project
// that did not exist before the run: nothing else may create any during the run.
type ResourcesTrackerImpl struct {
	api               iaas.DefaultAPI
	projectID, region string
	cluster           string
	before            []resource
}

var _ helpers.ResourcesTrackerInterface = (*ResourcesTrackerImpl)(nil)

// resource is one thing of the cloud, such as "NIC" and its ID.
type resource struct{ kind, id string }

// InitializeResourcesTracker records the NICs and volumes that exist before the run.
// It returns an error if the cluster already has a server, because that would later
// look left by the run. machineClass and secretData are what the driver gets;
// clusterName is the value that the class must set for ClusterLabel.
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
		return fmt.Errorf("the cluster %s has servers before the run: %v: must have none", clusterName, servers)
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
		return fmt.Errorf("the label %s of class %s is %q: must be the cluster's name, %q, by which its servers are found",
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

// IsOrphanedResourcesAvailable reports whether the run has left a server, NIC or
// volume, and logs each of them. It also returns true if the cloud cannot be read:
// then nothing is known to be gone.
func (r *ResourcesTrackerImpl) IsOrphanedResourcesAvailable() bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	left, err := r.orphans(ctx)
	if err != nil {
		log.Printf("Orphans: counted as left, because the cloud cannot be read: %v", err)
		return true
	}
	for _, orphan := range left {
		log.Printf("Orphans: the run has left %s %s", orphan.kind, orphan.id)
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
