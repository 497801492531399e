// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

// maxByID limits how many servers that a list lacks are read one by one, per place.
const maxByID = 8

// Query selects what a Result contains.
type Query struct {
	// AllNamespaces selects the Machines of all namespaces, and the projects of the MachineClasses there.
	AllNamespaces bool
	// Machine selects one Machine of the namespace by name; "" means all.
	Machine string
	// Server selects one server by ID or name, whatever cluster it belongs to; "" means all.
	Server string
}

// observation is the data read, and after join the relations in it.
type observation struct {
	*account.Access

	query Query
	now   time.Time
	// scope is the namespace of the Machines; "" means all.
	scope string

	classes     []*account.Class
	classesRead bool
	machines    []v1alpha1.Machine
	places      []*place
	// allMachinesRead means that the Machines of all namespaces were read.
	allMachinesRead bool

	mu sync.Mutex
	// unread lists what could not be read, by cause.
	unread map[string][]string
	facts  []string

	// clusters are the cluster labels of the servers to check.
	clusters     []map[string]string
	serverViews  []*serverView
	machineViews []*machineView
}

// place is an account's project and region, with the data read there.
type place struct {
	*account.Account
	isRead  bool
	servers []provider.Server
	// gone are the IDs for which the API returned "not found".
	gone []string
}

// Read reads and joins the data for a query. Each read ends within ReadTimeout. It continues after
// failed reads, and lists them in the Result's Unknown.
func Read(ctx context.Context, o *account.Access, query Query) *Result {
	s := &observation{Access: o, query: query, now: o.Clock.Now(), unread: map[string][]string{}}
	if !query.AllNamespaces {
		s.scope = o.Namespace
	}
	s.readServers(ctx)
	s.readCluster(ctx)
	s.join()
	if s.readLacking(ctx) {
		s.join()
	}
	s.readDetails(ctx)
	return s.result()
}

// readServers reads the servers of the account that the user named, or of the projects of the classes.
func (s *observation) readServers(ctx context.Context) {
	accounts, problems := s.Accounts(ctx, s.scope)
	for _, problem := range problems {
		s.missInCluster("servers", problem)
	}
	for _, used := range accounts {
		s.places = append(s.places, &place{Account: used})
	}
	var reads sync.WaitGroup
	for _, at := range s.places {
		reads.Go(func() {
			var err error
			if at.servers, err = at.Servers(ctx, nil); err != nil {
				s.miss("servers of "+at.String(), failure(err))
			}
			at.isRead = err == nil
		})
	}
	reads.Wait()
}

// readCluster reads MachineClasses and Machines. A Machine exists before its server, so only Machines that are read
// after the servers can prove that a server is an orphan. With rights in one namespace only, that cannot be told.
func (s *observation) readCluster(ctx context.Context) {
	if s.Control == nil {
		s.missInCluster("Machines", s.ControlError)
		return
	}
	var err error
	if s.classes, err = s.Classes(ctx, s.scope); err != nil {
		s.missInCluster("MachineClasses", err)
	}
	s.classesRead = err == nil
	s.machines, err = s.Machines(ctx, metav1.NamespaceAll)
	s.allMachinesRead = err == nil
	if apierrors.IsForbidden(err) && s.scope != metav1.NamespaceAll {
		s.facts = append(s.facts, "cannot identify orphans: no permission to read the Machines of all namespaces")
		s.machines, err = s.Machines(ctx, s.scope)
	}
	if err != nil {
		s.missInCluster("Machines", err)
	}
}

// readLacking reads servers by their IDs that Machines or the query name, and that the list of their place lacks. It
// reports whether any exists.
func (s *observation) readLacking(ctx context.Context) (found bool) {
	for _, at := range s.places {
		ids := account.IDsIn(s.query.Server)
		for _, machine := range s.machineViews {
			id, err := providerid.Parse(machine.Spec.ProviderID, at.Session.ProjectID)
			isAsked := s.isAsked(machine) || machine.Name == s.query.Server
			if isAsked && err == nil && id != "" && s.placeOf(machine) == at {
				ids = append(ids, id)
			}
		}
		ids = slices.DeleteFunc(ids, func(id string) bool {
			return slices.ContainsFunc(s.serverViews, func(server *serverView) bool { return server.ID == id })
		})
		for i, id := range ids {
			if !at.isRead || i == maxByID {
				break
			}
			found = s.readByID(ctx, at, id) || found
		}
	}
	return found
}

// readByID reads a server that the list of a place lacks, and reports whether it exists.
func (s *observation) readByID(ctx context.Context, at *place, id string) bool {
	server, err := at.Server(ctx, id)
	switch {
	case provider.IsNotFound(err):
		at.gone = append(at.gone, id)
	case err != nil:
		s.miss("server "+id, failure(err))
	default:
		at.servers = append(at.servers, *server)
		s.facts = append(s.facts, fmt.Sprintf("the list of %v lacks server %s, which exists", at, id))
	}
	return err == nil
}

// readDetails reads what lists lack, for a query about one Machine or server.
func (s *observation) readDetails(ctx context.Context) {
	for _, server := range s.serverViews {
		if s.query.Machine+s.query.Server == "" || !s.isShown(server) {
			continue
		}
		addresses, _, err := server.at.Addresses(ctx, server.ID)
		for _, address := range addresses {
			if address.IsValid() {
				server.addresses = append(server.addresses, address.String())
			}
		}
		if err != nil {
			server.addresses = []string{Unknown}
			s.miss("addresses of server "+server.ID, failure(err))
		}
		if s.query.Server == "" {
			continue
		}
		if server.consoleLog, err = server.at.ConsoleLog(ctx, server.ID); err != nil {
			server.consoleLog = []string{Unknown}
			s.miss("console log of server "+server.ID, failure(err))
		}
	}
}

// miss records what could not be read.
func (s *observation) miss(what, cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cause = report.OneLine(cause); !slices.Contains(s.unread[cause], what) {
		s.unread[cause] = append(s.unread[cause], what)
	}
}

// missInCluster records what could not be read from the cluster. All reads that fail in an outage get the same cause,
// so that it is reported once.
func (s *observation) missInCluster(what string, err error) {
	var request *url.Error
	switch {
	case err == nil:
		s.miss(what, "no cluster with Machines was read")
	case errors.As(err, &request):
		s.miss(what, "the cluster with the Machines: "+request.Err.Error())
	default:
		s.miss(what, err.Error())
	}
}

// failure returns why an API call failed.
func failure(err error) string {
	_, text := account.Judge(err)
	return text
}

// unknown returns what could not be read, each cause once.
func (s *observation) unknown() []string {
	var texts []string
	for cause, whats := range s.unread {
		slices.Sort(whats)
		texts = append(texts, fmt.Sprintf("%s unknown: %s", strings.Join(whats, ", "), cause))
	}
	slices.Sort(texts)
	return texts
}
