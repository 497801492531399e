// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/internal/ledger"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Fields that errors name, beside those of packages apis and validation.
var (
	classProviderPath = field.NewPath("machineClass", "provider")
	machineNamePath   = field.NewPath("machine", "metadata", "name")
)

// call is a driver call with its request decoded and checked.
type call struct {
	door
	clock clock.Clock
	waits
	// serverID is the server that the request's ProviderID names; "" if it names none.
	serverID string
	// givenID is the request's ProviderID.
	givenID   string
	projectID string
	// spec has its defaults set. In a lenient call it may be invalid or empty in part.
	spec *apis.ProviderSpec
	// rawSpec is the ProviderSpec as it was given.
	rawSpec []byte

	client    StackitClient
	readers   *readers
	exhausted *classErrors
	// unlabelled are the classes of which a server shows no labels.
	unlabelled *classErrors
	meters     *meters
	// settle is how long the API may take until a request shows in its lists.
	settle time.Duration
	// networkErrors say why the spec's networking cannot be read.
	networkErrors field.ErrorList
	// provedGone are servers that this call has proved gone.
	provedGone map[string]bool
	// young says that the ledger has all that can have been done for the machine: it is
	// younger than this process's leadership, and than the time for which entries are kept.
	young bool
	// noPredecessorBefore is when a look-up must begin so that it sees every POST of a
	// predecessor; the zero time if none has worked on the machine.
	noPredecessorBefore time.Time
	// expires is when the Machine is older than its creation timeout; the zero time if it never is.
	expires time.Time
}

// strictness of decoding a request.
type strictness bool

const (
	// strict asks for a valid spec: the call is going to use it.
	strict strictness = true
	// lenient needs project, region and identity only: a machine whose class was broken
	// after it was made must still be found and deleted.
	lenient strictness = false
)

// newMachineCall decodes and checks the request of a call about a machine.
func (p *Provider) newMachineCall(machine *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *corev1.Secret, mode strictness) (*call, error) {
	if machine == nil {
		return nil, newError(ReasonInvalidInput, "the request has no Machine")
	}
	if machine.Name == "" {
		return nil, newError(ReasonInvalidInput, "the request's Machine has no name")
	}
	c, err := p.newCall(machine, class, secret, mode)
	if err != nil || machine.Spec.ProviderID == "" {
		return c, err
	}
	c.givenID = machine.Spec.ProviderID
	if c.serverID, err = providerid.Parse(machine.Spec.ProviderID, c.projectID); err != nil {
		return nil, newError(ReasonInvalidProviderID, fmt.Sprintf("machine %s: %v", machine.Name, err))
	}
	return c, nil
}

// providerID returns the ProviderID to answer for a server. One that OpenStack's provider wrote
// stays as it is: the manager writes back what it is told (v0.62.1 machine.go, updateLabels),
// and a Machine whose ID had become ours would not be known to have come from there.
func (c *call) providerID(serverID string) string {
	if serverID == c.serverID && providerid.IsOpenStack(c.givenID) {
		return c.givenID
	}
	return providerid.Format(c.projectID, serverID)
}

// newCall decodes and checks a request, and opens the session. machine is nil for a call
// about a class. All that is wrong is told at once, with the paths of the fields.
func (p *Provider) newCall(machine *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *corev1.Secret, mode strictness) (*call, error) {
	if class == nil {
		return nil, newError(ReasonInvalidInput, "the request has no MachineClass")
	}
	if secret == nil {
		return nil, newError(ReasonInvalidInput, "the request has no Secret")
	}
	in := decodeInputs(machine, class, secret, p.strictSpec)
	session, err := p.SPI.Session(Credentials(in.secret))
	if err := in.problems(mode, err); err != nil {
		return nil, err
	}
	p.sessions.Set(session.ProjectID, session)
	p.warn(in)
	c := p.newSessionCall(session, in.spec.Region)
	c.identity, c.spec, c.rawSpec, c.networkErrors = in.identity, in.spec, class.ProviderSpec.Raw, in.network
	c.key.Machine = in.identity.machine
	p.meters.nameClass(c.class)
	if machine != nil {
		c.key.Namespace, c.key.UID = machine.Namespace, string(machine.UID)
		c.noPredecessorBefore, c.young = p.predecessors(machine.CreationTimestamp.Time)
		if !p.withoutTarget {
			c.expires = p.creation.expires(machine)
		}
	}
	return c, nil
}

// newSessionCall is a call that knows nothing but where to read.
func (p *Provider) newSessionCall(session *spi.Session, region string) *call {
	readers := p.readersOf(session, region)
	return &call{
		clock: p.clock, settle: *p.settle, projectID: session.ProjectID, client: readers.client, readers: readers,
		exhausted: p.exhausted, unlabelled: p.unlabelled, meters: p.meters,
		door: door{
			identity: identity{unlabelable: true}, ledger: p.ledger,
			key: ledger.Key{Endpoint: session.Endpoint, Place: ledger.Place{ProjectID: session.ProjectID, Region: region}},
		},
	}
}

// serverRequest is the machine's server.
func (c *call) serverRequest() *ServerRequest {
	return &ServerRequest{Name: c.machine, Labels: c.serverLabels(c.spec.Labels), Spec: c.spec}
}

// warn logs what is odd but not wrong in a class, each thing once an hour at most.
func (p *Provider) warn(in *inputs) {
	class := in.identity.class
	if problems := sanitize(in.unknownText()); problems != "" && p.noteWarning("fields "+class+problems) {
		klog.InfoS("The MachineClass's providerSpec has fields that are not understood; they are ignored",
			"machineClass", loggable(class), "problems", problems)
	}
	if len(in.identity.cluster) == 0 && !in.identity.clusterUnknown && p.noteWarning("cluster "+class) {
		klog.InfoS("The MachineClass's providerSpec.labels have no cluster label (a key that ends in /cluster): machines are told apart by machine and class name only",
			"machineClass", loggable(class))
	}
}

// noPostBefore returns when a look-up must begin so that it sees the result of every
// POST for the machine. One that begins earlier proves nothing if it finds no server. It is the zero time if nothing
// is in doubt.
func (c *call) noPostBefore() time.Time {
	entry := c.ledger.Get(c.key)
	if own := entry.NoPostBefore(); own.After(c.noPredecessorBefore) {
		return own
	}
	return c.noPredecessorBefore
}

// nobodyElse says that nobody can have made a server for the machine that this process does
// not know of: the machine is young, did not come from OpenStack, and no POST is open.
func (c *call) nobodyElse() bool {
	entry := c.ledger.Get(c.key)
	return c.young && !c.fromOpenStack && !entry.HasOpenPost() && !entry.OfAnother
}

// checkElsewhere returns an error if this process knows of a server, or of an open POST, for
// the machine in another project or region: its Secret was edited, and with a POST here, or
// the end of the deletion, nobody would ever look there again.
func (c *call) checkElsewhere() error {
	entry := c.ledger.Get(c.key)
	other := entry.Elsewhere
	if other == nil {
		return nil
	}
	return newError(ReasonOtherProject, fmt.Sprintf(
		"machine %s has or may have a server in project %s, region %s, where it was created, "+
			"but its Secret or MachineClass names project %s, region %s now: restore them, or delete the machine with them",
		c.machine, other.ProjectID, other.Region, c.key.ProjectID, c.key.Region))
}

// inputs are a request's, decoded, with all that is wrong with them.
type inputs struct {
	identity identity
	secret   *apis.Secret
	// spec has its defaults set. A field that could not be decoded is empty.
	spec *apis.ProviderSpec
	// unknown names fields of the providerSpec that are ignored, as apis.DecodeProviderSpec does.
	unknown []error
	// needed are errors in what every call needs, others all the rest.
	needed, others field.ErrorList
	// network are those of the others by which the spec's networking cannot be read.
	network field.ErrorList
}

// decodeInputs decodes and checks a request's inputs. machine is nil for a call about a
// class.
func decodeInputs(machine *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *corev1.Secret, refuseUnknown bool) *inputs {
	in := &inputs{}
	in.secret, in.needed = apis.DecodeSecret(secret.Data)
	in.needed = append(in.needed, unrelated(validation.ValidateSecret(in.secret, apis.SecretPath), in.needed)...)
	if class.Provider != "" && class.Provider != StackitProviderName {
		in.needed = append(in.needed, field.NotSupported(classProviderPath, class.Provider, []string{StackitProviderName}))
	}
	labels := in.decodeSpec(class.ProviderSpec.Raw, refuseUnknown)
	in.identify(machine, class.Name)
	empty := validation.ValidateClusterLabels(in.identity.cluster, apis.SpecPath.Child("labels"))
	in.others = append(in.others, empty...)
	in.identity.clusterUnknown = !labels || len(empty) > 0 || len(validation.ValidateLabels(in.identity.cluster, nil)) > 0
	return in
}

// decodeSpec says whether the spec's labels could be read.
func (in *inputs) decodeSpec(raw []byte, refuseUnknown bool) (labels bool) {
	var decoding field.ErrorList
	in.spec, in.unknown, decoding = apis.DecodeProviderSpec(raw)
	if in.spec == nil {
		in.spec = &apis.ProviderSpec{}
	}
	network := validation.ValidateSecretNetwork(in.spec, in.secret, apis.SecretPath)
	apis.SetDefaults(in.spec, in.secret)

	region := apis.SpecPath.Child("region")
	in.needed = append(in.needed, validation.ValidateRegion(in.spec.Region, region)...)
	reported := append(slices.Clone(decoding), &field.Error{Field: region.String()})
	if len(network) > 0 {
		reported = append(reported, &field.Error{Field: apis.SpecPath.Child("networking").String()})
	}
	in.others = slices.Concat(decoding, network, unrelated(validation.ValidateProviderSpec(in.spec, apis.SpecPath), reported))
	in.network = slices.Concat(network, concerning(apis.SpecPath.Child("networking"), in.others))
	if in.network == nil && !apis.IsReadable(raw, "networking", &apis.Networking{}) {
		in.network = decoding
	}
	if refuseUnknown {
		for _, problem := range in.unknown {
			in.others = append(in.others, field.Invalid(apis.SpecPath, field.OmitValueType{}, problem.Error()))
		}
	}
	return apis.IsReadable(raw, "labels", &map[string]string{})
}

func (in *inputs) unknownText() string {
	var texts []string
	for _, problem := range in.unknown {
		texts = append(texts, problem.Error())
	}
	return strings.Join(texts, ", ")
}

// identify sets the identity, and checks that its names can be labels.
func (in *inputs) identify(machine *v1alpha1.Machine, class string) {
	errs := validation.ValidateMachineClassName(class, field.NewPath("machineClass", "metadata", "name"))
	name := ""
	if machine != nil {
		name = machine.Name
		errs = append(errs, validation.ValidateMachineName(name, machineNamePath)...)
	}
	in.identity = newIdentity(name, class, in.spec.Labels)
	if machine != nil && cameFromOpenStack(machine) {
		in.identity.fromOpenStack, in.identity.byName = true, machine.Spec.ProviderID == ""
	}
	in.identity.unlabelable = len(errs) > 0
	in.others = append(in.others, errs...)
}

// problems returns the error of a call that cannot be made with these inputs, nil if it can
// be made. sessionErr is the error of opening the session, which checks the credentials. All
// errors are told at once, also those that a lenient call alone would ignore.
func (in *inputs) problems(mode strictness, sessionErr error) error {
	all := slices.Concat(in.needed, in.others)
	problem := CredentialsProblem(in.secret, sessionErr, all)
	missing := problem != nil && problem.Type == field.ErrorTypeRequired
	if missing || problem != nil && len(all) > 0 {
		all = append(all, problem)
	}
	var unusable *spi.CredentialsError
	if missing || len(in.needed) > 0 || len(all) > 0 && (mode == strict || errors.As(sessionErr, &unusable)) {
		return invalidError(all)
	}
	return sessionErr
}
