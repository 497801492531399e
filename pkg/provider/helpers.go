// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// serverPayload converts a request. Unset fields of the spec are not sent, so that the API's own
// defaults apply.
func serverPayload(request *ServerRequest) iaas.CreateServerPayload {
	spec := request.Spec
	payload := iaas.CreateServerPayload{
		Name:                request.Name,
		MachineType:         spec.MachineType,
		Labels:              texts(request.Labels),
		Metadata:            texts(spec.Metadata),
		SecurityGroups:      spec.SecurityGroups,
		Volumes:             spec.Volumes,
		ServiceAccountMails: spec.ServiceAccountMails,
		KeypairName:         optional(spec.KeypairName),
		AvailabilityZone:    optional(spec.AvailabilityZone),
		AffinityGroup:       optional(spec.AffinityGroup),
		ConfigDrive:         spec.ConfigDrive,
		Networking:          networkingPayload(spec.Networking),
		BootVolume:          bootVolumePayload(spec.BootVolume),
	}
	if spec.BootVolume == nil { // else the volume has it as source: the API refuses both
		payload.ImageId = optional(spec.ImageID)
	}
	if spec.UserData != "" {
		payload.UserData = optional(base64.StdEncoding.EncodeToString([]byte(spec.UserData)))
	}
	if spec.Agent != nil {
		payload.Agent = &iaas.ServerAgent{Provisioned: spec.Agent.Provisioned}
	}
	return payload
}

// networkingPayload sets exactly one of the two forms: the API refuses an empty object because it
// matches both.
func networkingPayload(networking *apis.Networking) iaas.CreateServerPayloadAllOfNetworking {
	if networking.NetworkID != "" {
		return iaas.CreateServerPayloadAllOfNetworking{
			CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: &networking.NetworkID},
		}
	}
	return iaas.CreateServerPayloadAllOfNetworking{
		CreateServerNetworkingWithNics: &iaas.CreateServerNetworkingWithNics{NicIds: networking.NICIDs},
	}
}

func bootVolumePayload(volume *apis.BootVolume) *iaas.BootVolume {
	if volume == nil {
		return nil
	}
	payload := &iaas.BootVolume{
		Size:                volume.Size,
		PerformanceClass:    optional(volume.PerformanceClass),
		DeleteOnTermination: volume.DeleteOnTermination,
	}
	if volume.Source != nil {
		payload.Source = &iaas.BootVolumeSource{Id: volume.Source.ID, Type: volume.Source.Type}
		if volume.Source.Type == apis.SourceVolume {
			payload.DeleteOnTermination = nil
		}
	}
	return payload
}

// serverAnswer is a server of an answer, also one that the SDK's decoder refuses. ID, name, labels and
// metadata determine whose a server is, so they must have their types: without its labels, a server would be
// missed, and a second one made.
type serverAnswer struct {
	ID               string
	Name             string
	Labels           map[string]any
	Metadata         map[string]any
	Status           tolerant[string]
	ErrorMessage     tolerant[string]
	MachineType      tolerant[string]
	AvailabilityZone tolerant[string]
	CreatedAt        tolerant[time.Time]
}

func (s *serverAnswer) server() Server {
	return Server{
		ID:           s.ID,
		Name:         s.Name,
		Status:       s.Status.value,
		ErrorMessage: s.ErrorMessage.value,
		MachineType:  s.MachineType.value,
		Zone:         s.AvailabilityZone.value,
		Labels:       stringValues(s.Labels),
		Metadata:     stringValues(s.Metadata),
		CreatedAt:    s.CreatedAt.value,
	}
}

// tolerant is a field of an answer; it has its zero value if the answer's has another type.
type tolerant[T any] struct{ value T }

// UnmarshalJSON implements json.Unmarshaler.
func (l *tolerant[T]) UnmarshalJSON(raw []byte) error {
	var value T
	if json.Unmarshal(raw, &value) == nil {
		l.value = value
	}
	return nil
}

func nicFromSDK(nic *iaas.NIC) NIC {
	converted := NIC{
		ID:        nic.GetId(),
		Name:      nic.GetName(),
		NetworkID: nic.GetNetworkId(),
		ServerID:  nic.GetDevice(),
		Type:      nic.GetType(),
		Labels:    stringValues(nic.Labels),
		IPv4:      nic.GetIpv4(),
		IPv6:      nic.GetIpv6(),
		Insecure:  nic.NicSecurity != nil && !*nic.NicSecurity,
	}
	for _, address := range nic.AllowedAddresses {
		if address.String != nil {
			converted.AllowedAddresses = append(converted.AllowedAddresses, *address.String)
		}
	}
	return converted
}

func allowedAddressesToSDK(addresses []string) []iaas.AllowedAddressesInner {
	converted := make([]iaas.AllowedAddressesInner, 0, len(addresses))
	for _, address := range addresses {
		converted = append(converted, iaas.StringAsAllowedAddressesInner(&address))
	}
	return converted
}

// texts and stringValues convert the SDK's type of labels and metadata. Scalars of metadata become
// strings: the API takes only these, and 4711 in YAML is a number.
func texts[V any](values map[string]V) map[string]any {
	if len(values) == 0 {
		return nil
	}
	converted := make(map[string]any, len(values))
	for key, value := range values {
		converted[key] = fmt.Sprint(value)
	}
	return converted
}

func stringValues(labels map[string]any) map[string]string {
	converted := make(map[string]string, len(labels))
	for key, value := range labels {
		converted[key] = fmt.Sprint(value)
	}
	return converted
}

// optional returns nil for an empty text, so that the field is not sent.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// labelSelector returns a selector in a stable order, with equality only: nothing else was seen to
// work everywhere.
func labelSelector(labels map[string]string) string {
	terms := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		terms = append(terms, key+"="+labels[key])
	}
	return strings.Join(terms, ",")
}
