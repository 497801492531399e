// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"fmt"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// The reads of the API: those of the driver, and those that "validate --online" makes. One
// that is added here is used by validate's catalogue, and tried by doctor if it is in Trials.
var (
	ListServers = Need{"servers", "iaas.server.list", true}
	Server      = APIRead[*provider.Server]{Need{"server", "iaas.server.get", true}, (*Account).server}
	ServerNICs  = APIRead[[]provider.NIC]{Need{"a server's NICs", "iaas.server.nic.list", true}, (*Account).serverNICs}
	NICs        = ofDriver(list("NICs", "iaas.nic.list", iaas.DefaultAPI.ListProjectNICs))

	Project = APIRead[*iaas.Project]{Need{What: "project", Permission: "iaas.project.get"}, (*Account).project}
	Zones   = APIRead[*iaas.AvailabilityZoneListResponse]{Need{What: "availability zones"}, (*Account).zones}
	// KeyPairs and KeyPair are those of the credentials: key pairs belong to no project.
	KeyPairs = APIRead[*iaas.KeyPairListResponse]{Need{What: "key pairs"}, (*Account).keyPairs}
	KeyPair  = APIRead[*iaas.Keypair]{Need{What: "key pair"}, (*Account).keyPair}

	Networks           = list("networks", "iaas.network.list", iaas.DefaultAPI.ListNetworks)
	Images             = list("images", "iaas.image.list", iaas.DefaultAPI.ListImages)
	MachineTypes       = list("machine types", "iaas.machine-type.list", iaas.DefaultAPI.ListMachineTypes)
	Volumes            = list("volumes", "iaas.volume.list", iaas.DefaultAPI.ListVolumes)
	PerformanceClasses = list("performance classes", "iaas.volume-performance-class.list", iaas.DefaultAPI.ListVolumePerformanceClasses)
	Quotas             = list("quotas", "iaas.quota.get", iaas.DefaultAPI.ListQuotas)
	SecurityGroups     = list("security groups", "iaas.security-group.list", iaas.DefaultAPI.ListSecurityGroups)
	AffinityGroups     = list("affinity groups", "iaas.affinity-group.list", iaas.DefaultAPI.ListAffinityGroups)

	Network       = get("network", "iaas.network.get", iaas.DefaultAPI.GetNetwork)
	NIC           = get("NIC", "iaas.nic.get", iaas.DefaultAPI.GetProjectNIC)
	Image         = get("image", "iaas.image.get", iaas.DefaultAPI.GetImage)
	Snapshot      = get("snapshot", "iaas.snapshot.get", iaas.DefaultAPI.GetSnapshot)
	Volume        = get("volume", "iaas.volume.get", iaas.DefaultAPI.GetVolume)
	SecurityGroup = get("security group", "iaas.security-group.get", iaas.DefaultAPI.GetSecurityGroup)
	AffinityGroup = get("affinity group", "iaas.affinity-group.get", iaas.DefaultAPI.GetAffinityGroup)
)

// Trials are the lists that show with a call each what a service account may read. Project,
// zones and servers are not among them: more is made of their answers.
var Trials = []APIRead[struct{}]{
	untyped(NICs), untyped(Networks), untyped(Images), untyped(MachineTypes), untyped(Volumes), untyped(PerformanceClasses),
	untyped(Quotas), untyped(SecurityGroups), untyped(AffinityGroups), untyped(KeyPairs),
}

// Need is what a read of the API needs.
type Need struct {
	// What is read: "image", or in the plural for a list: "images".
	What string
	// Permission is that of the API document; "" if a token is enough.
	Permission string
	// Driver says that the driver makes the read. "validate --online" makes the others.
	Driver bool
}

// Doing says what is done: "listing images", "reading image x".
func (n Need) Doing(id string) string {
	if id == "" {
		return "listing " + n.What
	}
	return "reading " + n.What + " " + id
}

// APIRead is one read of the API.
type APIRead[T any] struct {
	Need
	// Call makes the read; id is "" for a list. It belongs into Read, which waits for its turn.
	Call func(a *Account, ctx context.Context, id string) (T, error)
}

// Of makes the read in an account, when its turn comes.
func (r APIRead[T]) Of(ctx context.Context, a *Account, id string) (T, error) {
	return Read(ctx, a, func(ctx context.Context) (T, error) { return r.Call(a, ctx, id) })
}

// request is one of the SDK's.
type request[T any] interface{ Execute() (T, error) }

// list is a read of all things of a kind in the account's project and region.
func list[T any, R request[T]](what, permission string, call func(api iaas.DefaultAPI, ctx context.Context, project, region string) R) APIRead[T] {
	return APIRead[T]{Need{What: what, Permission: permission}, func(a *Account, ctx context.Context, _ string) (T, error) {
		return call(a.Session.API, ctx, a.Session.ProjectID, a.Region).Execute()
	}}
}

// get is a read of one thing in the account's project and region.
func get[T any, R request[T]](what, permission string, call func(api iaas.DefaultAPI, ctx context.Context, project, region, id string) R) APIRead[T] {
	return APIRead[T]{Need{What: what, Permission: permission}, func(a *Account, ctx context.Context, id string) (T, error) {
		return call(a.Session.API, ctx, a.Session.ProjectID, a.Region, id).Execute()
	}}
}

func ofDriver[T any](read APIRead[T]) APIRead[T] {
	read.Driver = true
	return read
}

// untyped is a read whose answer nobody needs.
func untyped[T any](read APIRead[T]) APIRead[struct{}] {
	return APIRead[struct{}]{read.Need, func(a *Account, ctx context.Context, id string) (struct{}, error) {
		_, err := read.Call(a, ctx, id)
		return struct{}{}, err
	}}
}

// Read makes one read of the API, when its turn comes among the session's reads. The read
// timeout begins then.
func Read[T any](ctx context.Context, account *Account, call func(context.Context) (T, error)) (T, error) {
	if err := spi.WaitForRead(ctx, clock.RealClock{}, account.Session.Reads); err != nil {
		var none T
		return none, err
	}
	if account.readTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, account.readTimeout)
		defer cancel()
	}
	return call(ctx)
}

// Servers lists the account's servers that carry all the labels; nil means all servers.
func (a *Account) Servers(ctx context.Context, labels map[string]string) ([]provider.Server, error) {
	client := provider.NewClient(a.Session, a.Region)
	return Read(ctx, a, func(ctx context.Context) ([]provider.Server, error) { return client.ListServers(ctx, labels) })
}

// Server reads one of the account's servers.
func (a *Account) Server(ctx context.Context, id string) (*provider.Server, error) {
	return Server.Of(ctx, a, id)
}

// Failure is a failed call of the API as the manager would be told of it.
func (a *Account) Failure(err error) error {
	_, text := provider.Classify(err)
	return fmt.Errorf("%s: %s", a.Origin, text)
}

// Addresses reads the addresses of all servers of the account's project and region.
func (a *Account) Addresses(ctx context.Context) (map[string][]string, error) {
	nics, err := Read(ctx, a, func(ctx context.Context) ([]provider.NIC, error) {
		return provider.ListProjectNICs(ctx, a.Session, a.Region)
	})
	if err != nil {
		return nil, err
	}
	byServer := map[string][]string{}
	for i := range nics {
		if server := nics[i].ServerID; server != "" {
			byServer[server] = append(byServer[server], nics[i].Addresses()...)
		}
	}
	return byServer, nil
}

func (a *Account) server(ctx context.Context, id string) (*provider.Server, error) {
	return provider.NewClient(a.Session, a.Region).GetServer(ctx, id)
}

func (a *Account) serverNICs(ctx context.Context, id string) ([]provider.NIC, error) {
	return provider.NewClient(a.Session, a.Region).ListServerNICs(ctx, id)
}

func (a *Account) project(ctx context.Context, id string) (*iaas.Project, error) {
	return a.Session.API.GetProjectDetails(ctx, id).Execute()
}

func (a *Account) zones(ctx context.Context, _ string) (*iaas.AvailabilityZoneListResponse, error) {
	return a.Session.API.ListAvailabilityZones(ctx, a.Region).Execute()
}

func (a *Account) keyPairs(ctx context.Context, _ string) (*iaas.KeyPairListResponse, error) {
	return a.Session.API.ListKeyPairs(ctx).Execute()
}

func (a *Account) keyPair(ctx context.Context, name string) (*iaas.Keypair, error) {
	return a.Session.API.GetKeyPair(ctx, name).Execute()
}
