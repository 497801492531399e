// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/finding"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// examineProject says what the API tells of the project.
func (p *patient) examineProject(project *iaas.Project, err error) {
	subject := p.subject("project")
	switch {
	case err == nil && project != nil:
		p.fine(subject, fmt.Sprintf("%s is %s", p.Session.ProjectID, project.Status))
	case statusOf(err) == http.StatusNotFound:
		p.wrong(subject, fmt.Sprintf("the API does not know %s: %s", p.Session.ProjectID, finding.OneLine(err.Error())), "correct projectId in the Secret")
	default:
		p.reportRead(apiRead{what: "project", permission: "iaas.project.get"}, subject, err)
	}
}

// examineRegion says whether the API knows the region.
func (p *patient) examineRegion(ctx context.Context) {
	subject := p.subject("region")
	zones, got := askTimed(ctx, p, "listing availability zones", func(ctx context.Context, api iaas.DefaultAPI) (*iaas.AvailabilityZoneListResponse, error) {
		return api.ListAvailabilityZones(ctx, p.Region).Execute()
	})
	const remedy = "correct region in the providerSpec or the Secret; no machine may exist in the old one"
	switch status := statusOf(got.err); {
	case status == http.StatusNotFound, status == http.StatusBadRequest:
		p.wrong(subject, fmt.Sprintf("the API does not know %s: %s", p.Region, finding.OneLine(got.err.Error())), remedy)
	case got.err != nil:
		p.reportRead(apiRead{what: "availability zones"}, subject, got.err)
	case zones == nil || len(zones.Items) == 0:
		p.wrong(subject, p.Region+" has no availability zone", remedy)
	default:
		p.fine(subject, fmt.Sprintf("%s has the zones %s", p.Region, strings.Join(slices.Sorted(slices.Values(zones.Items)), ", ")))
	}
}

// apiRead is one read of the API.
type apiRead struct {
	// what is read, in the plural.
	what string
	// permission is that of the API document; "" if a token is enough.
	permission string
	// driver says that the driver makes it. The others are for "validate --online".
	driver bool
	call   func(ctx context.Context, api iaas.DefaultAPI, projectID, region string) error
}

// discard leaves a read's error.
func discard[T any](_ T, err error) error { return err }

// apiReads are those that need no ID, but for project, zones and servers.
var apiReads = []apiRead{
	{"NICs", "iaas.nic.list", true, func(ctx context.Context, api iaas.DefaultAPI, project, region string) error {
		return discard(api.ListProjectNICs(ctx, project, region).Execute())
	}},
	{"networks", "iaas.network.list", false, func(ctx context.Context, api iaas.DefaultAPI, project, region string) error {
		return discard(api.ListNetworks(ctx, project, region).Execute())
	}},
	{"images", "iaas.image.list", false, func(ctx context.Context, api iaas.DefaultAPI, project, region string) error {
		return discard(api.ListImages(ctx, project, region).Execute())
	}},
	{"machine types", "iaas.machine-type.list", false, func(ctx context.Context, api iaas.DefaultAPI, project, region string) error {
		return discard(api.ListMachineTypes(ctx, project, region).Execute())
	}},
	{"volumes", "iaas.volume.list", false, func(ctx context.Context, api iaas.DefaultAPI, project, region string) error {
		return discard(api.ListVolumes(ctx, project, region).Execute())
	}},
	{"performance classes", "iaas.volume-performance-class.list", false, func(ctx context.Context, api iaas.DefaultAPI, project, region string) error {
		return discard(api.ListVolumePerformanceClasses(ctx, project, region).Execute())
	}},
	{"quotas", "iaas.quota.get", false, func(ctx context.Context, api iaas.DefaultAPI, project, region string) error {
		return discard(api.ListQuotas(ctx, project, region).Execute())
	}},
	{"security groups", "iaas.security-group.list", false, func(ctx context.Context, api iaas.DefaultAPI, project, region string) error {
		return discard(api.ListSecurityGroups(ctx, project, region).Execute())
	}},
	{"affinity groups", "iaas.affinity-group.list", false, func(ctx context.Context, api iaas.DefaultAPI, project, region string) error {
		return discard(api.ListAffinityGroups(ctx, project, region).Execute())
	}},
	{"key pairs", "", false, func(ctx context.Context, api iaas.DefaultAPI, _, _ string) error {
		return discard(api.ListKeyPairs(ctx).Execute())
	}},
}

// examineReads tries each read once. What changes servers cannot be tried without doing it.
func (p *patient) examineReads(ctx context.Context) {
	p.examineServers(ctx)
	for _, read := range apiReads {
		if ctx.Err() != nil {
			return
		}
		p.looking("reads: " + read.what)
		_, got := askTimed(ctx, p, "listing "+read.what, func(ctx context.Context, api iaas.DefaultAPI) (struct{}, error) {
			return struct{}{}, read.call(ctx, api, p.Session.ProjectID, p.Region)
		})
		p.reportRead(read, p.subject("reads: "+read.what), got.err)
	}
	p.hint(p.subject("creating, changing and deleting servers"), "not looked at: only doing it would tell",
		"see that the service account has iaas.server.create, iaas.server.delete and iaas.nic.update; the first Machine shows the rest in its status")
}

// examineServers reads the servers, and one server's NICs.
func (p *patient) examineServers(ctx context.Context) {
	p.looking("reads: servers")
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	servers, err := p.Servers(ctx, p.selector())
	p.reportRead(apiRead{what: "servers", permission: "iaas.server.list", driver: true}, p.subject("reads: servers"), err)
	if err != nil {
		return
	}
	p.servers[p.Account] = servers
	if len(servers) == 0 {
		return // without a server nobody has NICs to ask for
	}
	_, err = account.Read(ctx, p.Account, func(ctx context.Context) ([]provider.NIC, error) {
		return provider.NewClient(p.Session, p.Region).ListServerNICs(ctx, servers[0].ID)
	})
	if statusOf(err) == http.StatusNotFound {
		return // it was deleted meanwhile
	}
	p.reportRead(apiRead{what: "a server's NICs", permission: "iaas.server.nic.list", driver: true}, p.subject("reads: a server's NICs"), err)
}

// selector has the one cluster label of the account's classes. Without one, or with several,
// it is nil, and all servers of the project are read: one list is less than several.
func (p *patient) selector() map[string]string {
	var only map[string]string
	for _, class := range p.Classes {
		labels := provider.Inspect(class, p.Secret).ClusterLabels
		if len(labels) == 0 || only != nil && !maps.Equal(only, labels) {
			return nil
		}
		only = labels
	}
	return only
}

// reportRead says whether a read is allowed.
func (p *patient) reportRead(read apiRead, subject string, err error) {
	if err == nil {
		p.fine(subject, "allowed")
		return
	}
	code, text := provider.Classify(err)
	remedy := ""
	if read.permission != "" {
		remedy = "give the service account the permission " + read.permission + " in the project"
	}
	switch {
	case code != codes.PermissionDenied:
		p.unknown(subject, text, "try again later")
	case read.driver:
		p.wrong(subject, fmt.Sprintf("not allowed (status %d): the driver needs it", statusOf(err)), remedy)
	default:
		p.hint(subject, fmt.Sprintf("not allowed (status %d): the driver does not need it, but \"validate --online\" cannot tell without", statusOf(err)), remedy)
	}
}
