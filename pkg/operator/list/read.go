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
	// emptyPause is when a list without any server is read again: an API can show an empty
	// project for some seconds.
	emptyPause = 5 * time.Second
	// mostByID is how many servers of a place are read one by one, because a list lacks them.
	mostByID = 8
	// leaseName is the Lease of who copies the Nodes' conditions: the manager's part that runs
	// in the sidecar.
	leaseName = "machine-controller"
)

// errEmptyOnce says that a list without any server could not be read a second time.
var errEmptyOnce = fmt.Errorf("a list showed no server at all, and there was no time to read it again after %s (--request-timeout)", emptyPause)

// Query says what a Result is about.
type Query struct {
	// Cluster is a cluster label of which nothing else is shown; nil means those of the classes.
	Cluster map[string]string
	// AllNamespaces asks for the Machines of all namespaces, and for the projects that the
	// MachineClasses there name.
	AllNamespaces bool
	// Machine is the one of the namespace that is asked for; "" means all.
	Machine string
	// Server is the ID or name of the one that is asked for, whoever it belongs to; "" means all.
	Server string
}

// isAboutOne says whether the rest is not asked for.
func (q *Query) isAboutOne() bool { return q.Machine != "" || q.Server != "" }

// observation is what was read, and after join what belongs together.
type observation struct {
	*account.Access

	query Query
	now   time.Time
	// scope is the namespace of the Machines; "" is all.
	scope string

	classes     []*account.Class
	machines    []v1alpha1.Machine
	leases      []coordinationv1.Lease
	places      []*place
	classesRead bool
	// secretless says of classes, by their Subject, why they have no Secret.
	secretless map[string]string
	// machinesRead is about those of the scope, allMachinesRead about those of all namespaces,
	// after the servers were read.
	machinesRead, allMachinesRead bool

	mu sync.Mutex
	// unread is what could not be read, by cause.
	unread map[string][]string

	// clusters are the cluster labels by which servers are checked.
	clusters     []map[string]string
	serverViews  []*serverView
	machineViews []*machineView
}

// place is a project and region, and what was read there.
type place struct {
	project, region string
	// accounts reach it, with different keys; the first that works is used.
	accounts []*account.Account
	// used is the one that worked; nil if the servers were not read.
	used    *account.Account
	servers []provider.Server
	// partial says that the list lacks servers that are there.
	partial bool
	// gone are the IDs of servers that the API itself does not find, asked counts the reads.
	gone  []string
	asked int
}

func (p *place) String() string { return fmt.Sprintf("project %s in %s", p.project, p.region) }

// Read reads and joins what a query is about, in the Access's ReadTimeout. What cannot be read
// does not end it, and is among the Result's Unknown.
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

// read reads the API and the cluster side by side. A Machine is there before its server, so that
// only Machines that are listed after the servers tell who is an orphan.
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
	case ctx.Err() != nil: // whoever took it is told already, or it was this list
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

// readLeases reads who says that Nodes are ready. Without leader election there is no Lease.
func (s *observation) readLeases(ctx context.Context) {
	var leases coordinationv1.LeaseList
	err := s.Control.List(ctx, &leases, client.InNamespace(s.scope), client.MatchingFields{"metadata.name": leaseName})
	if err != nil {
		s.missInCluster("age of readiness", fmt.Errorf("listing Leases: %w", err))
	}
	s.leases = leases.Items
}

// readServers reads the servers of the account that the user names, or of the projects of the
// classes.
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
	s.places = append(s.places, &place{project: found.Session.ProjectID, region: found.Region, accounts: []*account.Account{found}})
}

// readPlace reads the servers of a place with the first account that can.
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

// listServers believes a list without any server only the second time.
func (s *observation) listServers(ctx context.Context, of *account.Account) ([]provider.Server, error) {
	servers, err := of.Servers(ctx, nil)
	if err != nil || len(servers) > 0 {
		return servers, err
	}
	if spi.Sleep(ctx, s.Clock, emptyPause) != nil {
		return nil, errEmptyOnce
	}
	return of.Servers(ctx, nil)
}

// readMissing reads servers that Machines name and that no list has shown, by their IDs: a list
// alone does not prove that a server is gone. It says whether one is there.
func (s *observation) readMissing(ctx context.Context) (found bool) {
	for _, machine := range s.machineViews {
		at := s.placeOf(machine)
		if at == nil || !s.isAsked(machine) || machine.DeletionTimestamp != nil || machine.server() != nil {
			continue
		}
		id, err := providerid.Parse(machine.Spec.ProviderID, at.project)
		if err != nil || id == "" {
			continue
		}
		if slices.ContainsFunc(at.servers, func(server provider.Server) bool { return server.ID == id }) {
			continue // it is another Machine's
		}
		if at.asked++; at.asked > mostByID {
			s.miss("other servers of Machines", fmt.Sprintf("the list of %v lacks more than %d", at, mostByID))
			continue
		}
		found = s.readByID(ctx, at, id) || found
	}
	return s.readAsked(ctx) || found
}

// readAsked reads the server of the query, which no list has shown, by the IDs that it may have. It says whether it is there.
func (s *observation) readAsked(ctx context.Context) (found bool) {
	asked := s.query.Server
	if asked == "" || slices.ContainsFunc(s.serverViews, s.isShown) {
		return false
	}
	ids, named := account.IDsIn(asked), ""
	for i := range s.machines {
		machine := &s.machines[i]
		if ofMachine := account.IDsIn(machine.Spec.ProviderID); machine.Name == asked || slices.ContainsFunc(ids, func(id string) bool {
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
		s.miss("server "+asked, fmt.Sprintf("Machine %s names it, and no read shows it", named))
	}
	return found
}

// readByID reads a server that the list of a place lacks. It says whether it is there.
func (s *observation) readByID(ctx context.Context, at *place, id string) bool {
	server, err := at.used.Server(ctx, id)
	switch {
	case provider.IsNotFound(err):
		at.gone = append(at.gone, id)
	case err != nil:
		s.miss("server "+id, s.failure(ctx, err))
	default:
		at.servers, at.partial = append(at.servers, *server), true
		s.miss("servers of "+at.String(), fmt.Sprintf("the list lacks server %s, which is there", id))
	}
	return err == nil
}

// readDetails reads what no list has of the servers of a query about one Machine or server.
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
		if s.query.Server != "" {
			s.readConsole(ctx, server)
		}
	}
}

// readConsole reads what a console log explains. Where the user data of the server is not known, its lines are not
// shown: they may repeat it.
func (s *observation) readConsole(ctx context.Context, server *serverView) {
	userData, isKnown := "", false
	for _, class := range s.classes {
		if class.Name != server.Labels[provider.StackitMachineClassLabel] || !account.Carries(server.Labels, class.Inputs.ClusterLabels) {
			continue
		}
		if secret, err := s.SecretOf(ctx, class.MachineClass); err == nil {
			userData, isKnown = provider.Inspect(class.MachineClass, secret).Spec.UserData, true
		}
	}
	cause, lines, err := server.at.used.Console(ctx, server.ID, userData)
	switch {
	case err != nil:
		server.console = &Console{Cause: Unknown}
		s.miss("console log of server "+server.ID, s.failure(ctx, err))
	case cause == Unknown: // no pattern matches
		server.console = &Console{}
	case isKnown:
		server.console = &Console{Cause: cause, Lines: lines}
	default:
		server.console = &Console{Cause: cause}
	}
}

// miss notes what could not be read.
func (s *observation) miss(what, cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cause = report.OneLine(cause); !slices.Contains(s.unread[cause], what) {
		s.unread[cause] = append(s.unread[cause], what)
	}
}

// missInCluster notes what could not be read because of the cluster. The cause is the same for
// all that an outage hits, so that it is told once.
func (s *observation) missInCluster(what string, err error) {
	var request *url.Error
	switch {
	case err == nil:
		s.miss(what, "no cluster with Machines was asked")
	case errors.Is(err, context.DeadlineExceeded):
		s.miss(what, fmt.Sprintf("the cluster with the Machines does not answer within %s (--request-timeout)", s.ReadTimeout))
	case errors.As(err, &request):
		s.miss(what, "the cluster with the Machines: "+request.Err.Error())
	default:
		s.miss(what, err.Error())
	}
}

// failure is why a call of the API failed.
func (s *observation) failure(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, errEmptyOnce):
		return err.Error()
	case ctx.Err() != nil && s.ReadTimeout > 0:
		return fmt.Sprintf("the API does not answer within %s (--request-timeout)", s.ReadTimeout)
	}
	_, text := provider.Classify(err)
	return text
}

// unknown says what could not be read, each cause once.
func (s *observation) unknown() []string {
	var texts []string
	for cause, whats := range s.unread {
		slices.Sort(whats)
		texts = append(texts, fmt.Sprintf("%s unknown: %s", strings.Join(whats, ", "), cause))
	}
	slices.Sort(texts)
	return texts
}
