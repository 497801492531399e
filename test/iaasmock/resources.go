// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
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
	ID        string `json:"id"`
	ProjectID string `json:"projectId"`
	Region    string `json:"region"`
	NetworkID string `json:"networkId"`
	Name      string `json:"name,omitempty"`
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
	ID        string `json:"id"`
	ProjectID string `json:"projectId"`
	Region    string `json:"region"`
	Name      string `json:"name,omitempty"`
	// Size is the size of the disk, in GB.
	Size             int64  `json:"size"`
	PerformanceClass string `json:"performanceClass,omitempty"`
	AvailabilityZone string `json:"availabilityZone"`
	Bootable         bool   `json:"bootable"`
	// Status is AVAILABLE or ATTACHED.
	Status string `json:"status"`
	// ServerID is the server that the volume is attached to; "" while it is detached.
	ServerID string            `json:"serverId,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	// MadeByServer reports whether the volume was created as the boot volume of a server.
	MadeByServer bool      `json:"madeByServer"`
	CreatedAt    time.Time `json:"createdAt"`
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

// listWhere shows the wanted resources that the request sees and its label_selector selects.
func listWhere[T resource](
	c *Cloud, r *request, in *collection[T], show func(*Cloud, T, time.Time) object, wanted func(T, time.Time) bool,
) (views []object, err *apiError) {
	selector, err := r.selector()
	if err != nil {
		return nil, err
	}
	c.locked(func(now time.Time) {
		for item := range in.each() {
			if wanted(item, now) && r.sees(item) && selector.Matches(item.labelSet()) {
				views = append(views, show(c, item, now))
			}
		}
	})
	return views, nil
}

// mergeTexts returns new labels or metadata: current with change applied. A null value removes a key. Of
// the API's documented rules only those are checked that concern all resources; slashes in keys, for
// example, work on servers.
func mergeTexts(current map[string]string, change map[string]any) (map[string]string, *apiError) {
	merged := orEmptyMap(current)
	for key, value := range change {
		text, isText := value.(string)
		switch {
		case value == nil:
			delete(merged, key)
		case !isText || key == "" || utf8.RuneCountInString(key) > 255 || utf8.RuneCountInString(text) > 255:
			// Source: the document: Labels' and Metadata's descriptions.
			return nil, badRequest("label or metadata %q must have 1 to 255 characters, and a text as value", key)
		default:
			merged[key] = text
		}
	}
	return merged, nil
}

// mergeLabels is mergeTexts with the rules of labels.
func mergeLabels(current map[string]string, change map[string]any) (map[string]string, *apiError) {
	for key, value := range change {
		text, _ := value.(string)
		if utf8.RuneCountInString(key) > 63 || utf8.RuneCountInString(text) > 63 || strings.HasPrefix(key, "stackit-") {
			// Source: the document: Labels' description.
			return nil, badRequest("label %q: key and value have at most 63 characters, and stackit- is reserved", key)
		}
	}
	return mergeTexts(current, change)
}
