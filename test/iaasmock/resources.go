// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/labels"
)

// Server is a server with all its fields, including those that the API never shows. Its maps and slices
// belong to the Cloud, which replaces them and never writes to them: callers must not write to them either.
type Server struct {
	ID           string `json:"id"`
	ProjectID    string `json:"projectId"`
	Region       string `json:"region"`
	Name         string `json:"name"`
	Status       string `json:"status"`
	ErrorMessage string `json:"errorMessage,omitempty"`

	Labels   map[string]string `json:"labels"`
	Metadata map[string]string `json:"metadata,omitempty"`
	// UserData is the user data, decoded from base64; nil if the request had none.
	UserData         []byte `json:"userData,omitempty"`
	MachineType      string `json:"machineType"`
	AvailabilityZone string `json:"availabilityZone"`
	AffinityGroup    string `json:"affinityGroup,omitempty"`
	KeypairName      string `json:"keypairName,omitempty"`
	// ImageID is the image of a server that boots without a boot volume; "" for all other servers.
	ImageID string `json:"imageId,omitempty"`
	// SecurityGroups are the IDs of the security groups, even if the request had names.
	SecurityGroups      []string `json:"securityGroups,omitempty"`
	ServiceAccountMails []string `json:"serviceAccountMails,omitempty"`
	// AgentProvisioned is agent.provisioned of the request; nil if the request did not set it.
	AgentProvisioned *bool `json:"agentProvisioned,omitempty"`

	// BootVolume is the boot volume; nil for a server with an ephemeral disk.
	BootVolume *BootVolume `json:"bootVolume,omitempty"`
	// VolumeIDs are the attached volumes, the boot volume first.
	VolumeIDs []string `json:"volumeIds"`
	// NetworkID is the networkId of the request; empty if it had nicIds.
	NetworkID string `json:"networkId,omitempty"`
	// NICIDs are the attached NICs.
	NICIDs []string `json:"nicIds"`

	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	// LaunchedAt is when the server first became ACTIVE; the zero time before.
	LaunchedAt time.Time `json:"launchedAt,omitzero"`
}

// BootVolume is a server's boot volume: its ID and the parameters of CreateServer.
type BootVolume struct {
	ID string `json:"id"`
	// Size is the size of the disk, in GB.
	Size             int64  `json:"size"`
	PerformanceClass string `json:"performanceClass,omitempty"`
	// DeleteOnTermination is the request's deleteOnTermination. Default: false, as in the API.
	DeleteOnTermination bool `json:"deleteOnTermination"`
	// SourceType is image, snapshot or volume; SourceID is the ID of that resource.
	SourceType string `json:"sourceType"`
	SourceID   string `json:"sourceId"`
}

// NIC is a network interface.
type NIC struct {
	ID          string `json:"id"`
	ProjectID   string `json:"projectId"`
	Region      string `json:"region"`
	NetworkID   string `json:"networkId"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	// ServerID is the server that the NIC is attached to; "" while it is detached.
	ServerID string `json:"serverId,omitempty"`
	// IPv4 and IPv6 are the NIC's addresses. An address is "" if the network has no prefix of its
	// family, and until WithAddressDelay is over. In a Catalogue, "" means any free address, and an
	// empty MAC a generated one.
	IPv4             string            `json:"ipv4,omitempty"`
	IPv6             string            `json:"ipv6,omitempty"`
	MAC              string            `json:"mac"`
	AllowedAddresses []string          `json:"allowedAddresses,omitempty"`
	SecurityGroups   []string          `json:"securityGroups,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	// SecurityDisabled is the opposite of the API's field nicSecurity. Such a NIC refuses
	// allowedAddresses.
	SecurityDisabled bool `json:"securityDisabled,omitempty"`
	// MadeByServer reports whether CreateServer created the NIC for a networkId. Such a NIC is
	// deleted with its server.
	MadeByServer bool `json:"madeByServer"`
}

// Volume is a disk.
type Volume struct {
	ID          string `json:"id"`
	ProjectID   string `json:"projectId"`
	Region      string `json:"region"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	// Size is the size of the disk, in GB.
	Size             int64  `json:"size"`
	PerformanceClass string `json:"performanceClass,omitempty"`
	AvailabilityZone string `json:"availabilityZone"`
	Bootable         bool   `json:"bootable"`
	// Status is VolumeAvailable, VolumeAttached or VolumeError.
	Status string `json:"status"`
	// ServerID is the server that the volume is attached to; "" while it is detached.
	ServerID string            `json:"serverId,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	// SourceType and SourceID are the source of the volume; "" if it has none.
	SourceType string `json:"sourceType,omitempty"`
	SourceID   string `json:"sourceId,omitempty"`
	// MadeByServer reports whether the volume was created as the boot volume of a server.
	MadeByServer bool      `json:"madeByServer"`
	CreatedAt    time.Time `json:"createdAt"`
	UpdatedAt    time.Time `json:"updatedAt"`
}

// detach detaches the volume, which becomes AVAILABLE.
func (v *Volume) detach(now time.Time) {
	v.ServerID, v.Status, v.UpdatedAt = "", VolumeAvailable, now
}

// The sources of volumes; there are no backups in the mock.
const (
	sourceImage    = "image"
	sourceSnapshot = "snapshot"
	// sourceVolume is also the source of a server that boots from an existing volume.
	sourceVolume = "volume"
)

// resource is the common interface of all resources of a project or region.
type resource interface {
	// scope returns its project and region; empty means all.
	scope() (projectID, region string)
	labelSet() labels.Set
}

func (s Server) scope() (string, string)  { return s.ProjectID, s.Region }
func (n NIC) scope() (string, string)     { return n.ProjectID, n.Region }
func (v Volume) scope() (string, string)  { return v.ProjectID, v.Region }
func (n Network) scope() (string, string) { return n.ProjectID, n.Region }

func (s Server) labelSet() labels.Set  { return s.Labels }
func (n NIC) labelSet() labels.Set     { return n.Labels }
func (v Volume) labelSet() labels.Set  { return v.Labels }
func (n Network) labelSet() labels.Set { return nil }

// sees reports whether the resource is in the request's project and region.
func (r *request) sees(item resource) bool {
	project, region := item.scope()
	return (project == "" || project == r.project()) && (region == "" || region == r.region())
}

// found returns the resource with this ID in the request's project and region.
func found[T resource](r *request, in *collection[T], id string) (T, bool) {
	item, ok := in.get(id)
	return item, ok && r.sees(item)
}

// first returns the first item for which fits is true.
func first[T any](items []T, fits func(T) bool) (T, bool) {
	if i := slices.IndexFunc(items, fits); i >= 0 {
		return items[i], true
	}
	var none T
	return none, false
}

// named is a path variable that names a resource, with the API's word for it.
type named struct{ variable, what string }

var (
	namedServer  = named{"serverId", "server"}
	namedNIC     = named{"nicId", "network interface"}
	namedVolume  = named{"volumeId", "volume"}
	namedNetwork = named{"networkId", "network"}
)

// onNamed runs f on the resource that the path names.
func onNamed[T resource](
	c *Cloud, r *request, in *collection[T], by named, f func(T, time.Time) *apiError,
) (err *apiError) {
	c.locked(func(now time.Time) {
		item, ok := found(r, in, r.vars[by.variable])
		if !ok {
			err = notFound(by.what)
			return
		}
		err = f(item, now)
	})
	return err
}

// withServer runs f on the server that the path names.
func (c *Cloud) withServer(r *request, f func(s *server, now time.Time) *apiError) *apiError {
	return onNamed(c, r, &c.servers, namedServer, f)
}

func allNICs(c *Cloud) *collection[*nic]         { return &c.nics }
func allVolumes(c *Cloud) *collection[*Volume]   { return &c.volumes }
func allNetworks(c *Cloud) *collection[*network] { return &c.networks }

// getOne returns the handler that shows the resource that the path names.
func getOne[T resource](
	in func(*Cloud) *collection[T], by named, show func(*Cloud, T, time.Time) object,
) handler {
	return func(c *Cloud, r *request) (view any, err *apiError) {
		err = onNamed(c, r, in(c), by, func(item T, now time.Time) *apiError {
			view = show(c, item, now)
			return nil
		})
		return view, err
	}
}

// listAll returns the handler of a list: it shows the resources that the request sees and label_selector selects.
func listAll[T resource](in func(*Cloud) *collection[T], show func(*Cloud, T, time.Time) object) handler {
	return func(c *Cloud, r *request) (any, *apiError) {
		views, err := listWhere(c, r, in(c), show, func(T) bool { return true })
		return items(views), err
	}
}

// listWhere shows the wanted resources that the request sees and its label_selector selects.
func listWhere[T resource](
	c *Cloud, r *request, in *collection[T], show func(*Cloud, T, time.Time) object, wanted func(T) bool,
) (views []object, err *apiError) {
	selector, err := r.selector()
	if err != nil {
		return nil, err
	}
	c.locked(func(now time.Time) {
		for item := range in.each() {
			if wanted(item) && r.sees(item) && selector.Matches(item.labelSet()) {
				views = append(views, show(c, item, now))
			}
		}
	})
	return views, nil
}

// mergeLabels returns new labels: current with change applied. A null value removes a key.
func mergeLabels(current map[string]string, change map[string]any) (map[string]string, *apiError) {
	return mergeTexts("label", 63, "stackit-", current, change)
}

// mergeMetadata is mergeLabels for metadata.
func mergeMetadata(current map[string]string, change map[string]any) (map[string]string, *apiError) {
	return mergeTexts("metadata", 255, "", current, change)
}

// mergeTexts merges labels or metadata and checks them as the API does: the number of characters of keys and
// values, and a prefix reserved for STACKIT, "" for none. It skips the API's further documented rules: slashes
// in keys, for example, work on servers.
func mergeTexts(
	what string, longest int, reserved string, current map[string]string, change map[string]any,
) (map[string]string, *apiError) {
	merged := orEmptyMap(current)
	for _, key := range slices.Sorted(maps.Keys(change)) {
		value, isText := change[key].(string)
		problem := ""
		switch {
		case key == "" || utf8.RuneCountInString(key) > longest:
			problem = fmt.Sprintf("key %q must have between 1 and %d characters", key, longest)
		case reserved != "" && strings.HasPrefix(key, reserved):
			problem = fmt.Sprintf("key %q uses the reserved prefix %q", key, reserved)
		case change[key] == nil:
			delete(merged, key)
		case !isText:
			problem = fmt.Sprintf("%q: the value must be a string", key)
		case utf8.RuneCountInString(value) > longest:
			problem = fmt.Sprintf("%q: the value must not exceed %d characters", key, longest)
		default:
			merged[key] = value
		}
		if problem != "" {
			// Source: the document: Labels' and Metadata's descriptions, which have a pattern for values.
			return nil, badRequest("%s %s", what, problem)
		}
	}
	return merged, nil
}
