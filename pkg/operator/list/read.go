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
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

const (
	// secondPause is the delay before servers are read again that a list lacks, or an empty list: the API may return
	// such lists for some seconds.
	secondPause = 5 * time.Second
	// maxByID limits how many servers that a list lacks are read one by one, per place.
	maxByID = 8
	// leaseName is the Lease of the component that copies the Nodes' conditions: the part of the manager in the sidecar.
	leaseName = "machine-controller"
)

// errOneLook means that there was no time for a second look at what a list lacks.
var errOneLook = fmt.Errorf("a list lacks servers, "+
	"and --request-timeout is too short to read it again after %s: must be longer", secondPause)

// Query selects what a Result contains.
type Query struct {
	// Cluster limits the result to the clusters with these labels; nil means the cluster labels of
	// the classes.
	Cluster map[string]string
	// AllNamespaces selects the Machines of all namespaces, and the projects of the MachineClasses there.
	AllNamespaces bool
	// Machine selects one Machine of the namespace by name; "" means all.
	Machine string
	// Server selects one server by ID or name, whatever cluster it belongs to; "" means all.
	Server string
}

// isAboutOne reports whether the query selects one Machine or server.
func (q *Query) isAboutOne() bool { return q.Machine != "" || q.Server != "" }

// observation is the data read, and after join the relations in it.
type observation struct {
	*account.Access

	query Query
	now   time.Time
	// scope is the namespace of the Machines; "" means all.
	scope string

	classes     []*account.Class
	machines    []v1alpha1.Machine
	leases      []coordinationv1.Lease
	places      []*place
	classesRead bool
	// secretless maps classes, by Subject, to the reason why they have no Secret.
	secretless map[string]string
	// machinesRead means that the Machines of the scope were read; allMachinesRead that those of all namespaces were read,
	// after the servers.
	machinesRead, allMachinesRead bool

	mu sync.Mutex
	// unread lists what could not be read, by cause.
	unread map[string][]string

	// clusters are the cluster labels of the servers to check.
	clusters     []map[string]string
	serverViews  []*serverView
	machineViews []*machineView
}

// place is a project and region, with the data read there.
type place struct {
	project, region string
	// accounts give access to the place with different keys; the first that works is used.
	accounts []*account.Account
	// used is the account that worked; nil if the servers were not read.
	used    *account.Account
	servers []provider.Server
	// partial means that the list lacks existing servers, or could not be read a second time.
	partial bool
	// gone are the IDs for which the API returned "not found".
	gone []string
}

func (p *place) String() string { return fmt.Sprintf("project %s in %s", p.project, p.region) }

// Read reads and joins the data for a query within ReadTimeout. It continues after failed reads,
// and lists them in the Result's Unknown.
func Read(parent context.Context, o *account.Access, query Query) *Result {
	ctx, cancel := o.Bounded(parent)
	defer cancel()
	s := &observation{Access: o, query: query, now: o.Clock.Now(), unread: map[string][]string{}}
	if !query.AllNamespaces {
		s.scope = o.Namespace
	}
	s.read(ctx)
	s.join()
	if s.readMissing(ctx) {
		s.join()
	}
	s.readDetails(ctx)
	return s.result()
}

// read reads the API and the cluster in parallel. A Machine exists before its server, so only a list of Machines that
// is read after the servers can prove that a server is an orphan.
func (s *observation) read(ctx context.Context) {
	var reads sync.WaitGroup
	reads.Go(func() { s.readServers(ctx) })
	if s.Control != nil {
		reads.Go(func() { s.readClasses(ctx) })
		reads.Go(func() { s.readMachines(ctx) })
		reads.Go(func() { s.readLeases(ctx) })
	} else {
		s.missInCluster("MachineClasses", s.ControlError)
		s.missInCluster("Machines", s.ControlError)
	}
	reads.Wait()
	readAny := slices.ContainsFunc(s.places, func(at *place) bool { return at.used != nil })
	if !s.machinesRead || !readAny {
		return
	}
	all, err := s.Machines(ctx, metav1.NamespaceAll)
	switch {
	case err == nil:
		s.machines, s.allMachinesRead = all, true
	case ctx.Err() != nil: // the read that ran out of time is reported already
		s.miss("orphans", "no time was left to list the Machines of all namespaces (--request-timeout)")
	default:
		s.missInCluster("orphans", err)
	}
}

func (s *observation) readClasses(ctx context.Context) {
	classes, err := s.Classes(ctx, s.scope)
	if err != nil {
		s.missInCluster("MachineClasses", err)
	}
	s.classes, s.classesRead = classes, err == nil
}

func (s *observation) readMachines(ctx context.Context) {
	machines, err := s.Machines(ctx, s.scope)
	if err != nil {
		s.missInCluster("Machines", err)
		return
	}
	s.machines, s.machinesRead = machines, true
}

// readLeases reads the Leases, which show whether READY is current. Without leader election there is no Lease.
func (s *observation) readLeases(ctx context.Context) {
	var leases coordinationv1.LeaseList
	err := s.Control.List(ctx, &leases, client.InNamespace(s.scope), client.MatchingFields{"metadata.name": leaseName})
	if err != nil {
		s.missInCluster("age of readiness", fmt.Errorf("listing Leases: %w", err))
	}
	s.leases = leases.Items
}

// readServers reads the servers of the account that the user named, or of the projects of the classes.
func (s *observation) readServers(ctx context.Context) {
	accounts, problems := s.Accounts(ctx, s.scope)
	s.secretless = map[string]string{}
	for _, problem := range problems {
		var class *account.ClassError
		if errors.As(problem, &class) && errors.Is(class, account.ErrNoSecret) {
			s.secretless[class.Class.Subject()] = class.Err.Error()
		}
		s.missInCluster("servers", problem)
	}
	for _, account := range accounts {
		s.addAccount(account)
	}
	var reads sync.WaitGroup
	for _, at := range s.places {
		reads.Go(func() { s.readPlace(ctx, at) })
	}
	reads.Wait()
}

func (s *observation) addAccount(found *account.Account) {
	for _, at := range s.places {
		if at.String() == found.String() {
			at.accounts = append(at.accounts, found)
			return
		}
	}
	s.places = append(s.places,
		&place{project: found.Session.ProjectID, region: found.Region, accounts: []*account.Account{found}})
}

// readPlace reads the servers of a place with the first account that works.
func (s *observation) readPlace(ctx context.Context, at *place) {
	var failures []string
	for _, used := range at.accounts {
		servers, err := s.listServers(ctx, used)
		if err == nil {
			at.servers, at.used = servers, used
			return
		}
		failures = append(failures, s.failure(ctx, err))
	}
	s.miss("servers of "+at.String(), strings.Join(slices.Compact(failures), "; "))
}

// listServers lists servers. It accepts an empty list only the second time.
func (s *observation) listServers(ctx context.Context, of *account.Account) ([]provider.Server, error) {
	servers, err := of.Servers(ctx, nil)
	if err != nil || len(servers) > 0 {
		return servers, err
	}
	if err := s.pause(ctx); err != nil {
		return nil, err
	}
	return of.Servers(ctx, nil)
}

// pause waits for secondPause. It returns errOneLook, at once if possible, if there is no time for that.
func (s *observation) pause(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok && end.Sub(s.Clock.Now()) < secondPause {
		return errOneLook
	}
	if spi.Sleep(ctx, s.Clock, secondPause) != nil {
		return errOneLook
	}
	return nil
}

// readMissing looks for servers that Machines should have, but that no list shows. It reports whether any list lacks a
// server that exists, or could not be read a second time.
func (s *observation) readMissing(ctx context.Context) bool {
	var looks sync.WaitGroup
	for _, at := range s.places {
		if machines := s.lacking(at); len(machines) > 0 {
			looks.Go(func() { s.lookTwice(ctx, at, machines) })
		}
	}
	looks.Wait()
	isPartial := func(at *place) bool { return at.partial }
	return s.readAsked(ctx) || slices.ContainsFunc(s.places, isPartial)
}

// lacking returns the Machines whose servers should be in a place, but are not in its list.
func (s *observation) lacking(at *place) (machines []*v1alpha1.Machine) {
	for _, machine := range s.machineViews {
		if s.placeOf(machine) == at && s.isAsked(machine) && machine.DeletionTimestamp == nil &&
			machine.server() == nil && !machine.mayWaitForServer() {
			machines = append(machines, machine.Machine)
		}
	}
	return machines
}

// lookTwice reads the servers of Machines by their IDs. Neither a list nor such a read proves that a server is gone,
// not even both at one moment. So if none of the servers exists, both are repeated later.
func (s *observation) lookTwice(ctx context.Context, at *place, machines []*v1alpha1.Machine) {
	for _, id := range s.idsOf(at, machines) {
		s.readByID(ctx, at, id)
	}
	first := at.gone
	hasNoID := func(machine *v1alpha1.Machine) bool { return machine.Spec.ProviderID == "" }
	switch {
	case at.partial || len(at.servers) == 0: // an empty list was read twice already
		return
	case len(first) == 0 && !slices.ContainsFunc(machines, hasNoID):
		return
	}
	at.gone = nil
	err := s.pause(ctx)
	if err == nil {
		err = s.listAgain(ctx, at, machines)
	}
	if err != nil {
		at.partial = true
		s.miss("servers of "+at.String(), s.failure(ctx, err))
	}
	for _, id := range first {
		if !at.partial {
			s.readByID(ctx, at, id)
		}
	}
}

// idsOf returns the IDs of the servers that Machines name, at most maxByID.
func (s *observation) idsOf(at *place, machines []*v1alpha1.Machine) (ids []string) {
	for _, machine := range machines {
		id, err := providerid.Parse(machine.Spec.ProviderID, at.project)
		isAnothers := slices.ContainsFunc(at.servers, func(server provider.Server) bool { return server.ID == id })
		if err == nil && id != "" && !isAnothers {
			ids = append(ids, id)
		}
	}
	if len(ids) <= maxByID {
		return ids
	}
	s.miss("other servers of Machines",
		fmt.Sprintf("the list of %v lacks more than %d servers that Machines name", at, maxByID))
	return ids[:maxByID]
}

// listAgain lists the servers of a place again, and adds those of Machines that its first list lacks.
func (s *observation) listAgain(ctx context.Context, at *place, machines []*v1alpha1.Machine) error {
	servers, err := at.used.Servers(ctx, nil)
	owners := account.NewOwners(s.machines)
	isLacking := func(owner *v1alpha1.Machine) bool { return slices.Contains(machines, owner) }
	for i := range servers {
		isKnown := slices.ContainsFunc(at.servers, func(known provider.Server) bool { return known.ID == servers[i].ID })
		if !isKnown && slices.ContainsFunc(owners.Of(&servers[i]), isLacking) {
			s.addLacking(at, &servers[i])
		}
	}
	return err
}

// addLacking adds a server that the list of a place lacks, but that exists.
func (s *observation) addLacking(at *place, server *provider.Server) {
	at.servers, at.partial = append(at.servers, *server), true
	s.miss("servers of "+at.String(), fmt.Sprintf("the list lacks server %s, which exists", server.ID))
}

// readAsked reads the server of the query, which no list has shown, by the IDs that it may have. It reports whether
// the server was found.
func (s *observation) readAsked(ctx context.Context) (found bool) {
	asked := s.query.Server
	if asked == "" || slices.ContainsFunc(s.serverViews, s.isShown) {
		return false
	}
	ids, named := account.IDsIn(asked), ""
	for i := range s.machines {
		machine := &s.machines[i]
		if ofMachine := account.IDsIn(machine.Spec.ProviderID); machine.Name == asked ||
			slices.ContainsFunc(ids, func(id string) bool {
				return slices.Contains(ofMachine, id)
			}) {
			ids, named = append(ids, ofMachine...), machine.Namespace+"/"+machine.Name
		}
	}
	slices.Sort(ids)
	for _, at := range s.places {
		if at.used == nil {
			continue
		}
		for _, id := range slices.Compact(ids) {
			found = s.readByID(ctx, at, id) || found
		}
		if !found && len(at.servers) == 0 {
			s.miss("server "+asked, fmt.Sprintf("the API shows no server at all in %v", at))
		}
	}
	if !found && named != "" {
		s.miss("server "+asked, fmt.Sprintf("Machine %s names it, but no read shows it", named))
	}
	return found
}

// readByID reads a server that the list of a place lacks, and reports whether it exists.
func (s *observation) readByID(ctx context.Context, at *place, id string) bool {
	server, err := at.used.Server(ctx, id)
	switch {
	case provider.IsNotFound(err):
		at.gone = append(at.gone, id)
	case err != nil:
		s.miss("server "+id, s.failure(ctx, err))
	default:
		s.addLacking(at, server)
	}
	return err == nil
}

// readDetails reads what lists lack, for a query about one Machine or server.
func (s *observation) readDetails(ctx context.Context) {
	for _, server := range s.serverViews {
		if !s.query.isAboutOne() || !s.isShown(server) {
			continue
		}
		addresses, _, err := server.at.used.Addresses(ctx, server.ID)
		for _, address := range addresses {
			server.addresses = append(server.addresses, address.String())
		}
		if err != nil {
			server.addresses = []string{Unknown}
			s.miss("addresses of server "+server.ID, s.failure(ctx, err))
		}
		if s.query.Server == "" {
			continue
		}
		if server.consoleLog, err = server.at.used.ConsoleLog(ctx, server.ID); err != nil {
			server.consoleLog = []string{Unknown}
			s.miss("console log of server "+server.ID, s.failure(ctx, err))
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
	case errors.Is(err, context.DeadlineExceeded):
		s.miss(what, fmt.Sprintf("the cluster with the Machines does not answer within %s (--request-timeout)",
			s.ReadTimeout))
	case errors.As(err, &request):
		s.miss(what, "the cluster with the Machines: "+request.Err.Error())
	default:
		s.miss(what, err.Error())
	}
}

// failure returns why an API call failed.
func (s *observation) failure(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, errOneLook):
		return err.Error()
	case ctx.Err() != nil && s.ReadTimeout > 0:
		return fmt.Sprintf("the API does not answer within %s (--request-timeout)", s.ReadTimeout)
	}
	return account.FailureText(err)
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
