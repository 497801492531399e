// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"
)

// Quota is how much a project may have in each region. Requests that would exceed a limit
// are refused; existing resources stay.
type Quota struct {
	VCPUs int64
	// RAM is in MB.
	RAM       int64
	Volumes   int64
	Snapshots int64
	Backups   int64
	// Gigabytes is the size of volumes and snapshots together, BackupGigabytes
	// that of backups.
	Gigabytes          int64
	BackupGigabytes    int64
	PublicIPs          int64
	Networks           int64
	NICs               int64
	SecurityGroups     int64
	SecurityGroupRules int64
}

// DefaultQuota returns the quota of every project without WithQuota, Project.Quota or
// SetQuota: enough for tens of thousands of servers.
func DefaultQuota() Quota {
	return Quota{
		VCPUs: 1_000_000, RAM: 4_000_000_000,
		Volumes: 100_000, Snapshots: 100_000, Backups: 100_000, Gigabytes: 1_000_000_000, BackupGigabytes: 100_000_000,
		PublicIPs: 1000, Networks: 1000, NICs: 100_000, SecurityGroups: 1000, SecurityGroupRules: 10_000,
	}
}

// WithQuota sets the quota of all projects that have none of their own. Start from
// DefaultQuota: a limit of 0 allows nothing.
func WithQuota(quota Quota) Option {
	return func(s *settings) { s.limits.quota = quota }
}

// defaultQuotaText is OpenStack's text.
const defaultQuotaText = "Quota exceeded for {resources}: Requested {requested}, but already used {used} of {limit} {resources}"

// WithQuotaRefusal sets the answer of CreateServer and ResizeServer when a quota would be
// exceeded. {resources}, {requested}, {used} and {limit} in the text are replaced; if
// several quotas are exceeded, each lists all of them. What STACKIT answers is not known.
// Default: 403 and "Quota exceeded for cores: Requested 4, but already used 20 of 20
// cores".
func WithQuotaRefusal(code int, text string) Option {
	return func(s *settings) { s.limits.quotaCode, s.limits.quotaText = code, text }
}

// SetQuota gives a project another quota from now on.
func (c *Cloud) SetQuota(projectID string, quota Quota) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hasProject(projectID) {
		return fmt.Errorf("no project %s", projectID)
	}
	c.quotas[projectID] = quota
	return nil
}

// quotaOf returns the project's own quota, else WithQuota's.
func (c *Cloud) quotaOf(project string) Quota {
	if own, ok := c.quotas[project]; ok {
		return own
	}
	return c.limits.quota
}

// demand is a requested amount of a limited resource. name is the resource in messages.
type demand struct {
	name               string
	wanted, used, most int64
}

func (d demand) exceeds() bool { return d.wanted > 0 && d.used+d.wanted > d.most }

// quotaNeed is what a new server needs, or what a resized one needs in addition.
type quotaNeed struct {
	vcpus, ram, nics, volumes, gigabytes int64
}

// allowServer refuses a server that would exceed quotas. The message names all of them.
func (c *Cloud) allowServer(project, region string, need quotaNeed) *apiError {
	used, most := c.usage(project, region), c.quotaOf(project)
	var exceeded []demand
	for _, d := range []demand{
		{"cores", need.vcpus, used.VCPUs, most.VCPUs},
		{"ram", need.ram, used.RAM, most.RAM},
		{"ports", need.nics, used.NICs, most.NICs},
		{"volumes", need.volumes, used.Volumes, most.Volumes},
		{"gigabytes", need.gigabytes, used.Gigabytes, most.Gigabytes},
	} {
		if d.exceeds() {
			exceeded = append(exceeded, d)
		}
	}
	if exceeded == nil {
		return nil
	}
	// Source: pull request 96 of the public STACKIT provider for machine-controller-manager:
	// a quota exceeded is an error of the create call; code and message are WithQuotaRefusal's.
	return newError(c.limits.quotaCode, "%s", fillQuotaText(c.limits.quotaText, exceeded))
}

func fillQuotaText(text string, exceeded []demand) string {
	var names, wanted, used, most []string
	for _, d := range exceeded {
		names = append(names, d.name)
		wanted = append(wanted, fmt.Sprint(d.wanted))
		used = append(used, fmt.Sprint(d.used))
		most = append(most, fmt.Sprint(d.most))
	}
	list := func(items []string) string { return strings.Join(items, ", ") }
	return strings.NewReplacer(
		"{resources}", list(names), "{requested}", list(wanted), "{used}", list(used), "{limit}", list(most),
	).Replace(text)
}

// allowVolume refuses a volume that would exceed a quota, with OpenStack's message.
func (c *Cloud) allowVolume(project, region string, gigabytes int64) *apiError {
	used, most := c.usage(project, region).Volumes, c.quotaOf(project).Volumes
	if used+1 > most {
		// Source: the document: a quota has a limit; 413 of CreateVolume.
		return newError(http.StatusRequestEntityTooLarge,
			"VolumeLimitExceeded: Maximum number of volumes allowed (%d) exceeded for quota 'volumes'.", most)
	}
	return c.allowGigabytes(http.StatusRequestEntityTooLarge, project, region, gigabytes)
}

// allowGigabytes refuses a size that would exceed the quota, with code: for ResizeVolume
// the document has no 413.
func (c *Cloud) allowGigabytes(code int, project, region string, gigabytes int64) *apiError {
	used, most := c.usage(project, region).Gigabytes, c.quotaOf(project).Gigabytes
	if used+gigabytes <= most {
		return nil
	}
	// Source: the document: a quota has a limit; 413 of CreateVolume and CreateSnapshot, 409
	// of ResizeVolume.
	return newError(code, "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. "+
		"Requested %dG, quota is %dG and %dG has been consumed.", gigabytes, most, used)
}

// allowNIC refuses a NIC that would exceed the quota, with code: the document has a 429
// for CreateNic, not for AddNetworkToServer.
func (c *Cloud) allowNIC(code int, project, region string) *apiError {
	return allowOne(code, "port", c.usage(project, region).NICs, c.quotaOf(project).NICs)
}

// allowOne refuses if one more exceeds the quota, with OpenStack's message.
func allowOne(code int, name string, used, most int64) *apiError {
	if used+1 > most {
		// Source: the document: a quota has a limit; where the operation has no 409, 413 or 429,
		// the 403 is the mock's choice.
		return newError(code, "Quota exceeded for resources: ['%s'].", name)
	}
	return nil
}

// resolveQuota counts what the server adds: an existing boot volume and the NICs of
// nicIds are counted already.
func (o *serverCreation) resolveQuota() *apiError {
	machineType, _ := o.cloud.findMachineType(o.server.MachineType)
	need := quotaNeed{vcpus: machineType.VCPUs, ram: machineType.RAM}
	if o.network != nil {
		need.nics = 1
	}
	if o.bootIsNew {
		need.volumes, need.gigabytes = 1, o.boot.Size
	}
	return o.cloud.allowServer(o.server.ProjectID, o.server.Region, need)
}

// usage counts what the project has in the region.
func (c *Cloud) usage(project, region string) Quota {
	in := func(itsProject, itsRegion string) bool { return itsProject == project && itsRegion == region }
	var used Quota
	for s := range c.servers.each() {
		if in(s.ProjectID, s.Region) {
			machineType, _ := c.findMachineType(s.MachineType)
			used.VCPUs += machineType.VCPUs
			used.RAM += machineType.RAM
		}
	}
	for v := range c.volumes.each() {
		if in(v.ProjectID, v.Region) {
			used.Volumes++
			used.Gigabytes += v.Size
		}
	}
	for s := range c.snapshots.each() {
		if in(s.ProjectID, s.Region) {
			used.Snapshots++
			used.Gigabytes += s.Size
		}
	}
	used.NICs = count(c.nics.each(), func(n *nic) bool { return in(n.ProjectID, n.Region) })
	used.Networks = count(c.networks.each(), func(n *network) bool { return in(n.ProjectID, n.Region) })
	used.SecurityGroups = count(c.securityGroups.each(), func(g *SecurityGroup) bool { return in(g.ProjectID, g.Region) })
	return used
}

func count[T any](items iter.Seq[T], fits func(T) bool) (n int64) {
	for item := range items {
		if fits(item) {
			n++
		}
	}
	return n
}

type quotaView struct {
	Limit int64 `json:"limit"`
	Usage int64 `json:"usage"`
}

type quotasView struct {
	VCPU               quotaView `json:"vcpu"`
	RAM                quotaView `json:"ram"`
	Volumes            quotaView `json:"volumes"`
	Snapshots          quotaView `json:"snapshots"`
	Backups            quotaView `json:"backups"`
	Gigabytes          quotaView `json:"gigabytes"`
	BackupGigabytes    quotaView `json:"backupGigabytes"`
	PublicIPs          quotaView `json:"publicIps"`
	Networks           quotaView `json:"networks"`
	NICs               quotaView `json:"nics"`
	SecurityGroups     quotaView `json:"securityGroups"`
	SecurityGroupRules quotaView `json:"securityGroupRules"`
}

func (c *Cloud) listQuotas(r *request) (any, *apiError) {
	var used, most Quota
	c.locked(func(time.Time) {
		used, most = c.usage(r.project(), r.region()), c.quotaOf(r.project())
	})
	return struct {
		Quotas quotasView `json:"quotas"`
	}{quotasView{
		VCPU:               quotaView{most.VCPUs, used.VCPUs},
		RAM:                quotaView{most.RAM, used.RAM},
		Volumes:            quotaView{most.Volumes, used.Volumes},
		Snapshots:          quotaView{most.Snapshots, used.Snapshots},
		Backups:            quotaView{most.Backups, used.Backups},
		Gigabytes:          quotaView{most.Gigabytes, used.Gigabytes},
		BackupGigabytes:    quotaView{most.BackupGigabytes, used.BackupGigabytes},
		PublicIPs:          quotaView{most.PublicIPs, used.PublicIPs},
		Networks:           quotaView{most.Networks, used.Networks},
		NICs:               quotaView{most.NICs, used.NICs},
		SecurityGroups:     quotaView{most.SecurityGroups, used.SecurityGroups},
		SecurityGroupRules: quotaView{most.SecurityGroupRules, used.SecurityGroupRules},
	}}, nil
}
