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
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// examineProject says what the API tells of the project. known is false if it is none.
func (p *accountCheck) examineProject(project *iaas.Project, err error) (known bool) {
	const subject = "project"
	switch {
	case err == nil && project != nil:
		p.fine(subject, fmt.Sprintf("%s is %s", p.Session.ProjectID, project.Status))
	case statusOf(err) == http.StatusNotFound:
		p.wrong(subject, fmt.Sprintf("the API does not know %s: %s", p.Session.ProjectID, report.OneLine(err.Error())), "correct projectId in the Secret")
		return false
	case isRefused(err):
		p.refused = append(p.refused, refusal{account.Project.Need, subject, err})
	default:
		p.reportRead(account.Project.Need, subject, err)
	}
	return true
}

// examineRegion says whether the API knows the region.
func (p *accountCheck) examineRegion(ctx context.Context) {
	const subject = "region"
	zones, got := askTimed(ctx, p, account.Zones, "")
	const remedy = "correct region in the providerSpec or the Secret; no machine may exist in the old one"
	switch status := statusOf(got.err); {
	case status == http.StatusNotFound, status == http.StatusBadRequest:
		p.wrong(subject, fmt.Sprintf("the API does not know %s: %s", p.Region, report.OneLine(got.err.Error())), remedy)
	case got.err != nil:
		p.reportRead(account.Zones.Need, subject, got.err)
	case zones == nil || len(zones.Items) == 0:
		p.wrong(subject, p.Region+" has no availability zone", remedy)
	default:
		p.fine(subject, fmt.Sprintf("%s has the zones %s", p.Region, strings.Join(slices.Sorted(slices.Values(zones.Items)), ", ")))
	}
}

// examineReads tries each read once. What changes servers cannot be tried without doing it.
func (p *accountCheck) examineReads(ctx context.Context) {
	p.examineServers(ctx)
	for _, read := range account.Trials {
		if ctx.Err() != nil {
			p.reportRefusals()
			return
		}
		p.looking("reads: " + read.What)
		_, got := askTimed(ctx, p, read, "")
		p.tried(read.Need, got.err)
	}
	if len(p.refused) > 0 {
		p.reportAllRefused()
		return
	}
	p.hint("creating, changing and deleting servers", "not looked at: only doing it would tell",
		"see that the service account has iaas.server.create, iaas.server.delete and iaas.nic.update; the first Machine shows the rest in its status")
}

func (p *accountCheck) examineServers(ctx context.Context) {
	p.looking("reads: " + account.ListServers.What)
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	servers, err := p.Servers(ctx, p.selector())
	p.tried(account.ListServers, err)
	if err != nil {
		return
	}
	p.servers[p.Account] = servers
	if len(servers) == 0 {
		return // without a server nobody has NICs to ask for
	}
	_, err = account.ServerNICs.Of(ctx, p.Account, servers[0].ID)
	if statusOf(err) == http.StatusNotFound {
		return // it was deleted meanwhile
	}
	p.tried(account.ServerNICs.Need, err)
}

// selector has the one cluster label of the account's classes. Without one, or with several,
// it is nil, and all servers of the project are read: one list is less than several.
func (p *accountCheck) selector() map[string]string {
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

func isRefused(err error) bool { return statusOf(err) == http.StatusForbidden }

// tried reports what became of a read. As long as all reads of the project are refused it
// waits: then there is one thing to say, and not one of each.
func (p *accountCheck) tried(read account.Need, err error) {
	subject := "reads: " + read.What
	switch {
	case read.Permission == "": // key pairs are of no project
	case isRefused(err) && !p.answered:
		p.refused = append(p.refused, refusal{read, subject, err})
		return
	default:
		p.answered = true
		p.reportRefusals()
	}
	p.reportRead(read, subject, err)
}

func (p *accountCheck) reportRefusals() {
	for _, refused := range p.refused {
		p.reportRead(refused.Need, refused.subject, refused.err)
	}
	p.refused = nil
}

// reportAllRefused says once that no read of the project is allowed.
func (p *accountCheck) reportAllRefused() {
	var permissions []string
	for _, refused := range p.refused {
		if refused.Driver {
			permissions = append(permissions, refused.Permission)
		}
	}
	give := "give the service account the permissions that the driver needs in the project, such as " + strings.Join(permissions, " and ")
	if p.refused[0].Need == account.Project.Need {
		p.wrong("project", fmt.Sprintf("the API refuses %s and all reads in it (status %d): what is there cannot be known",
			p.Session.ProjectID, http.StatusForbidden), "correct projectId in the Secret, or "+give)
		return
	}
	p.wrong("reads", fmt.Sprintf("none is allowed in the project (status %d): what is there cannot be known", http.StatusForbidden), give)
}

func (p *accountCheck) reportRead(read account.Need, subject string, err error) {
	if err == nil {
		p.fine(subject, "allowed")
		return
	}
	code, text := provider.Classify(err)
	remedy := ""
	if read.Permission != "" {
		remedy = "give the service account the permission " + read.Permission + " in the project"
	}
	switch {
	case code != codes.PermissionDenied:
		p.unknown(subject, text, "try again later")
	case read.Driver:
		p.wrong(subject, fmt.Sprintf("not allowed (status %d): the driver needs it", statusOf(err)), remedy)
	default:
		p.hint(subject, fmt.Sprintf("not allowed (status %d): the driver does not need it, but \"validate --online\" cannot tell without", statusOf(err)), remedy)
	}
}
