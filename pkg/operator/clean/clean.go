// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package clean deletes one cluster's servers that no Machine names.
package clean

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// Options say which servers a Cleanup is about.
type Options struct {
	// ClusterKey and ClusterValue are the one label of the cluster whose servers are looked
	// at. The key ends in "/cluster".
	ClusterKey, ClusterValue string
	// OlderThan is the least age of a server that is deleted.
	OlderThan time.Duration
	// Namespaces are those whose MachineClasses and Machines are read where the user may not
	// read all.
	Namespaces []string
	// ServerIDs are the only servers that may be deleted; none means all that are orphans.
	ServerIDs []string
}

// Orphan is a server that carries the cluster's label and both of the driver's, and that no
// Machine names.
type Orphan struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	State     string    `json:"state"`
	CreatedAt time.Time `json:"createdAt"`
	Class     string    `json:"class"`
	Machine   string    `json:"machine"`
	ProjectID string    `json:"projectID"`
	Region    string    `json:"region"`

	server located
}

// Kept is a server of the cluster that is left alone.
type Kept struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Reason says why, in one line.
	Reason string `json:"reason"`
	// Remedy is what deletes it all the same; "" if nothing should.
	Remedy string `json:"remedy,omitempty"`
}

// Plan is what PlanCleanup found: the servers that Delete may delete.
type Plan struct {
	Orphans []Orphan `json:"orphans"`
	Kept    []Kept   `json:"kept"`
	// Doubts say why servers that are in use could be among the orphans, so that only the
	// user can know: Delete must not be called then before the user has typed the cluster's
	// name.
	Doubts []string `json:"doubts"`

	operator *account.Access
	options  Options
	// namespaces are those whose Machines are read; none means all.
	namespaces []string
}

// Make finds the orphans of one cluster. It changes nothing. It fails if anything
// cannot be read that could name a server: a list of classes or Machines, a class with the
// label, its Secret.
func Make(ctx context.Context, o *account.Access, options Options) (*Plan, error) {
	if o.Control == nil {
		return nil, errors.New("the cluster with the Machines must be asked, and there is none")
	}
	plan := &Plan{operator: o, options: options, Orphans: []Orphan{}, Kept: []Kept{}, Doubts: []string{}}
	if err := plan.chooseNamespaces(ctx); err != nil {
		return nil, err
	}
	classes, err := plan.classes(ctx)
	if err != nil {
		return nil, err
	}
	accounts, err := accountsToClean(ctx, o, classes)
	if err != nil {
		return nil, err
	}
	servers, err := plan.servers(ctx, accounts, classes)
	if err != nil {
		return nil, err
	}
	// Last: a Machine is there before its server, so that no new server passes for an orphan.
	machines, err := o.Machines(ctx, plan.namespaces...)
	if err != nil {
		return nil, err
	}
	plan.sort(servers, machines)
	plan.doubtClasses(classes)
	return plan, nil
}

func (c Options) label() string { return c.ClusterKey + "=" + c.ClusterValue }

func (c Options) labels() map[string]string {
	return map[string]string{c.ClusterKey: c.ClusterValue}
}

// chooseNamespaces asks for the Machines of all namespaces; where that is forbidden, those
// named must do, and a Machine elsewhere cannot be seen.
func (c *Plan) chooseNamespaces(ctx context.Context) error {
	err := c.operator.Control.List(ctx, &v1alpha1.MachineList{}, client.Limit(1))
	switch {
	case err == nil:
		return nil
	case !apierrors.IsForbidden(err):
		return fmt.Errorf("listing Machines: %w", err)
	case len(c.options.Namespaces) == 0:
		return fmt.Errorf("listing Machines: %w; name the namespaces that have this cluster's with --namespaces", err)
	}
	c.namespaces = c.options.Namespaces
	c.Doubts = append(c.Doubts, fmt.Sprintf("only the Machines of %s can be read: a server that a Machine elsewhere names would pass for an orphan",
		strings.Join(c.namespaces, ", ")))
	return nil
}

// classes returns the MachineClasses that carry the cluster's label. A class whose labels
// cannot be read might be one of them: it is an error.
func (c *Plan) classes(ctx context.Context) ([]*v1alpha1.MachineClass, error) {
	classes, err := c.operator.InspectedClasses(ctx)
	if apierrors.IsForbidden(err) && len(c.options.Namespaces) > 0 {
		classes, err = c.operator.InspectedClasses(ctx, c.options.Namespaces...)
	}
	if err != nil {
		return nil, err
	}
	var found []*v1alpha1.MachineClass
	for _, class := range classes {
		switch {
		case account.IsForeign(class.MachineClass):
		case class.Inputs.ClusterUnknown:
			return nil, fmt.Errorf("MachineClass %s/%s: its providerSpec.labels cannot be read, it might be one of the cluster's: repair it first", class.Namespace, class.Name)
		case class.Inputs.ClusterLabels[c.options.ClusterKey] == c.options.ClusterValue:
			found = append(found, class.MachineClass)
		}
	}
	return found, nil
}

// accountsToClean returns the account that is named, else those of the classes.
func accountsToClean(ctx context.Context, o *account.Access, classes []*v1alpha1.MachineClass) ([]*account.Account, error) {
	secret, origin, err := o.NamedSecret(ctx)
	if err != nil {
		return nil, err
	}
	if secret != nil {
		named, err := o.Open(secret, "", origin)
		return []*account.Account{named}, err
	}
	if len(classes) == 0 {
		return nil, errors.New("no MachineClass carries the label: is this the cluster with its Machines? If the classes were deleted, name the credentials with --secret or -f, or --project-id, --region and --service-account-key-path")
	}
	accounts, problems := o.AccountsOf(ctx, classes)
	return accounts, errors.Join(problems...)
}

// carriedIn says whether one of the classes is of the account's project and region, by its
// own Secret in the cluster: what the command line says of credentials, and Secrets in
// files, would make every class fit.
func carriedIn(ctx context.Context, o *account.Access, at *account.Account, classes []*v1alpha1.MachineClass) (bool, error) {
	cluster := &account.Access{Control: o.Control}
	for _, class := range classes {
		secret, err := cluster.SecretOf(ctx, class)
		if err != nil {
			return false, fmt.Errorf("MachineClass %s/%s: %w", class.Namespace, class.Name, err)
		}
		in := provider.Inspect(class, secret)
		if in.Secret.ProjectID == at.Session.ProjectID && in.Spec.Region == at.Region {
			return true, nil
		}
	}
	return false, nil
}

// located is a server, and where it is.
type located struct {
	provider.Server
	at *account.Account
}

// servers lists the cluster's servers in each project and region, and doubts those where no
// class carries the label.
func (c *Plan) servers(ctx context.Context, accounts []*account.Account, classes []*v1alpha1.MachineClass) ([]located, error) {
	var all []located
	seen := map[string]bool{}
	for _, at := range accounts {
		place := fmt.Sprintf("project %s and region %s", at.Session.ProjectID, at.Region)
		if seen[place] { // with another key
			continue
		}
		seen[place] = true
		confirmed, err := carriedIn(ctx, c.operator, at, classes)
		if err != nil {
			return nil, err
		}
		if !confirmed {
			c.Doubts = append(c.Doubts, fmt.Sprintf("no MachineClass of the cluster with the Machines carries %s in %s: this may be the wrong cluster",
				c.options.label(), place))
		}
		servers, err := at.Servers(ctx, c.options.labels())
		if err != nil {
			return nil, at.Failure(err)
		}
		for _, server := range servers {
			if account.Carries(server.Labels, c.options.labels()) { // the API's selection is not relied on
				all = append(all, located{server, at})
			}
		}
	}
	return all, nil
}

// sort puts the servers among the orphans or the kept.
func (c *Plan) sort(servers []located, machines []v1alpha1.Machine) {
	slices.SortFunc(servers, func(a, b located) int {
		return cmp.Or(cmp.Compare(a.Labels[provider.StackitMachineClassLabel], b.Labels[provider.StackitMachineClassLabel]),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for _, server := range servers {
		if kept := c.keeps(&server.Server, machines); kept != nil {
			c.Kept = append(c.Kept, *kept)
			continue
		}
		c.Orphans = append(c.Orphans, Orphan{
			ID: server.ID, Name: server.Name, State: server.Status, CreatedAt: server.CreatedAt,
			Class: server.Labels[provider.StackitMachineClassLabel], Machine: server.Labels[provider.StackitMachineLabel],
			ProjectID: server.at.Session.ProjectID, Region: server.at.Region, server: server,
		})
	}
	for _, id := range c.options.ServerIDs {
		if !slices.ContainsFunc(servers, func(server located) bool { return server.ID == id }) {
			c.Kept = append(c.Kept, Kept{ID: id, Reason: fmt.Sprintf("it is no server with the label %s", c.options.label())})
		}
	}
}

// doubtClasses doubts orphans of classes that are not there: if another cluster has the same
// label, they are its servers.
func (c *Plan) doubtClasses(classes []*v1alpha1.MachineClass) {
	if len(classes) == 0 {
		return // that is doubted already
	}
	var missing []string
	for i := range c.Orphans {
		class := c.Orphans[i].Class
		if !slices.Contains(missing, class) && !slices.ContainsFunc(classes, func(c *v1alpha1.MachineClass) bool { return c.Name == class }) {
			missing = append(missing, class)
		}
	}
	if len(missing) > 0 {
		c.Doubts = append(c.Doubts, fmt.Sprintf("no MachineClass that carries %s is called %s: they may be servers of another cluster with this label",
			c.options.label(), strings.Join(missing, " or ")))
	}
}

// byMachine says that a Machine names the server.
func (k *Kept) byMachine(machine *v1alpha1.Machine) {
	k.Reason = fmt.Sprintf("Machine %s/%s names it", machine.Namespace, machine.Name)
	if ids := account.IDsIn(machine.Spec.ProviderID); len(ids) > 0 && !slices.Contains(ids, k.ID) {
		k.Reason = fmt.Sprintf("it is a second server of Machine %s/%s, whose server is %s: %s",
			machine.Namespace, machine.Name, ids[len(ids)-1], account.RemedyOrphan)
		return
	}
	k.Remedy = fmt.Sprintf("kubectl -n %s delete machine %s", machine.Namespace, machine.Name)
}

// inAnotherCluster says whether a server carries a cluster label of another value. Gardener
// writes one under two keys.
func (c *Plan) inAnotherCluster(server *provider.Server) bool {
	for _, value := range account.ClusterLabels(server.Labels) {
		if value != c.options.ClusterValue {
			return true
		}
	}
	return false
}

// keeps returns why a server must not be deleted; nil if it may.
func (c *Plan) keeps(server *provider.Server, machines []v1alpha1.Machine) *Kept {
	kept := &Kept{ID: server.ID, Name: server.Name}
	machine, class := server.Labels[provider.StackitMachineLabel], server.Labels[provider.StackitMachineClassLabel]
	owner := account.OwnerOf(server, machines)
	switch {
	case owner != nil:
		kept.byMachine(owner)
	case len(c.options.ServerIDs) > 0 && !slices.Contains(c.options.ServerIDs, server.ID):
		kept.Reason = "it is not among those named"
	case machine == "" || class == "":
		kept.Reason = fmt.Sprintf("it lacks the label %s or %s: it is not the manager's", provider.StackitMachineLabel, provider.StackitMachineClassLabel)
	case c.inAnotherCluster(server):
		kept.Reason = "it carries the label of another cluster, too: " + account.ClusterText(account.ClusterLabels(server.Labels))
	case server.CreatedAt.IsZero():
		kept.Reason = "its age is not known"
	case c.operator.Now().Sub(server.CreatedAt) < c.options.OlderThan:
		kept.Reason = fmt.Sprintf("it is younger than %s", c.options.OlderThan)
	default:
		return nil
	}
	return kept
}
