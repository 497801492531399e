// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/recent"
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
	identity
	// ledger is the process's, key the machine's place in it.
	ledger *ledger.Ledger
	key    ledger.Key
	clock  clock.Clock
	// begun says that the call waits, placeSeen that a read has shown its project and region; failed is
	// the last API call that failed: see wait.
	begun, placeSeen atomic.Bool
	failed           atomic.Pointer[APIError]
	// serverID is the server that the request's ProviderID names; "" if it names none.
	serverID string
	// givenID is the request's ProviderID.
	givenID string
	// spec has its defaults set. In a lenient call it may be invalid or empty in part.
	spec *apis.ProviderSpec
	// rawSpec is the ProviderSpec as it was given.
	rawSpec []byte

	client    StackitClient
	readers   *readers
	exhausted *classErrors
	// unlabelled are the classes of which a server shows no labels.
	unlabelled *classErrors
	failing    *recent.Map[classKey, time.Time]
	consoles   *consoles
	meters     *meters
	// settle is how long the API may take until a request shows in its lists.
	settle time.Duration
	// networkErrors say why the spec's networking cannot be read.
	networkErrors field.ErrorList
	// provedGone has the IDs of servers that this call has proved gone.
	provedGone sync.Map
	// young says that the ledger has all that can have been done for the machine: it is
	// younger than this process's leadership, and than the time for which entries are kept.
	young bool
	// noPredecessorBefore is when a look-up must begin so that it sees every POST of a
	// predecessor; the zero time if none has worked on the machine.
	noPredecessorBefore time.Time
	// expires is when the Machine is older than its creation timeout; the zero time if it never is.
	expires time.Time
	// isDeleted says that the Machine has a deletionTimestamp.
	isDeleted bool
	// neverJoined says that the Machine is deleted because it never had a Node.
	neverJoined bool
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
func (p *Provider) newMachineCall(
	machine *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *corev1.Secret, mode strictness,
) (*call, error) {
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
	if c.serverID, err = providerid.Parse(machine.Spec.ProviderID, c.key.ProjectID); err != nil {
		return nil, newError(ReasonInvalidProviderID, "machine %s: %v", machine.Name, err)
	}
	return c, nil
}

// newCall decodes and checks a request, and opens the session. machine is nil for a call
// about a class. All that is wrong is told at once, with the paths of the fields.
func (p *Provider) newCall(
	machine *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *corev1.Secret, mode strictness,
) (*call, error) {
	if class == nil {
		return nil, newError(ReasonInvalidInput, "the request has no MachineClass")
	}
	if secret == nil {
		return nil, newError(ReasonInvalidInput, "the request has no Secret")
	}
	in := decodeInputs(machine, class, secret, p.strictSpec)
	session, err := p.SPI.Session(Credentials(in.Secret))
	if err := in.problems(mode, err); err != nil {
		return nil, err
	}
	p.sessions.Set(session.ProjectID, session)
	p.warn(in)
	c := p.newSessionCall(session, in.Spec.Region)
	c.identity, c.spec, c.rawSpec, c.networkErrors = in.identity, in.Spec, class.ProviderSpec.Raw, in.network
	c.key.Machine = in.identity.machine
	p.meters.nameClass(c.class, session.KeyExpiry)
	if machine != nil {
		c.key.Namespace, c.key.UID, c.key.Created = machine.Namespace, string(machine.UID), machine.CreationTimestamp.Time
		c.isDeleted = machine.DeletionTimestamp != nil
		c.noPredecessorBefore, c.young = p.predecessors(machine.CreationTimestamp.Time)
		if !p.withoutTarget {
			c.expires, c.neverJoined = p.creation.expires(machine), p.creation.neverJoined(machine)
		}
	}
	return c, nil
}

// newSessionCall is a call that knows nothing but where to read.
func (p *Provider) newSessionCall(session *spi.Session, region string) *call {
	readers := p.readersOf(session, region)
	return &call{
		clock: p.clock, settle: *p.settle, client: readers.client, readers: readers,
		exhausted: p.exhausted, unlabelled: p.unlabelled, failing: p.failing, consoles: p.consoles, meters: p.meters,
		identity: identity{unlabelable: true}, ledger: p.ledger,
		key: ledger.Key{Endpoint: session.Endpoint, Place: ledger.Place{ProjectID: session.ProjectID, Region: region}},
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
		klog.InfoS("The MachineClass's providerSpec.labels have no cluster label (a key that ends in /cluster): "+
			"machines are told apart by machine and class name only",
			"machineClass", loggable(class))
	}
}

// noPostBefore returns when a look-up must begin so that it sees the result of every
// POST for the machine. One that begins earlier proves nothing if it finds no server. It is
// the zero time if nothing is in doubt.
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
	return newError(ReasonOtherProject,
		"machine %s has or may have a server in project %s, region %s, where it was created, "+
			"but its Secret or MachineClass names project %s, region %s now: restore them, or delete the machine with them",
		c.machine, other.ProjectID, other.Region, c.key.ProjectID, c.key.Region)
}

// Inputs are what a MachineClass and its Secret say, decoded and checked as every call of
// the driver does.
type Inputs struct {
	Secret *apis.Secret
	// Spec has its defaults set. A field that could not be decoded is empty.
	Spec *apis.ProviderSpec
	// ClusterLabels are the labels of Spec by which a cluster's servers are told from those
	// of others: as a rule one, or none.
	ClusterLabels map[string]string
	// ClusterUnknown says that the cluster labels could not be decoded, or are no valid
	// labels: which servers are the cluster's cannot be told then.
	ClusterUnknown bool
	// Unknown are the fields of the providerSpec that the driver ignores, or refuses with
	// --strict-provider-spec, as apis.DecodeProviderSpec names them.
	Unknown []error
	// Errors are everything that a strict call would refuse, with the paths of the fields:
	// providerSpec.…, secret.…, machineClass.… .
	Errors field.ErrorList
}

// Inspect decodes and checks what the driver is given for machines of a class: package operator
// decides as the driver does. It opens no session: whether the service-account key can be used is
// for package spi to say. A nil Secret is an empty one.
func Inspect(class *v1alpha1.MachineClass, secret *corev1.Secret) *Inputs {
	if secret == nil {
		secret = &corev1.Secret{}
	}
	in := decodeInputs(nil, class, secret, false)
	in.ClusterLabels, in.ClusterUnknown = in.identity.cluster, in.identity.clusterUnknown
	in.Errors = append(in.needed, in.others...)
	return &in.Inputs
}

// inputs are a request's, with all that is wrong with them.
type inputs struct {
	Inputs
	identity identity
	// needed are errors in what every call needs, others all the rest.
	needed, others field.ErrorList
	// network are those of the others by which the spec's networking cannot be read.
	network field.ErrorList
}

// decodeInputs decodes and checks a request's inputs. machine is nil for a call about a
// class.
func decodeInputs(
	machine *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *corev1.Secret, refuseUnknown bool,
) *inputs {
	in := &inputs{}
	in.Secret, in.needed = apis.DecodeSecret(secret.Data)
	in.needed = append(in.needed, unrelated(validation.ValidateSecret(in.Secret, apis.SecretPath), in.needed)...)
	in.needed = append(in.needed, checkProvider(class)...)
	labels := in.decodeSpec(class.ProviderSpec.Raw, refuseUnknown)
	in.identify(machine, class.Name)
	empty := validation.ValidateClusterLabels(in.identity.cluster, apis.SpecPath.Child("labels"))
	in.others = append(in.others, empty...)
	in.identity.clusterUnknown = !labels || len(empty) > 0 || len(validation.ValidateLabels(in.identity.cluster, nil)) > 0
	return in
}

// checkProvider returns an error if the class is another provider's.
func checkProvider(class *v1alpha1.MachineClass) field.ErrorList {
	if class.Provider == "" || class.Provider == StackitProviderName {
		return nil
	}
	return field.ErrorList{field.NotSupported(classProviderPath, class.Provider, []string{StackitProviderName})}
}

// unlistable returns why no server of a class can be listed, whatever its Secret has: the class is
// another provider's, as in a migration, or its region cannot be read; nil if it is neither.
func unlistable(class *v1alpha1.MachineClass) error {
	if class == nil {
		return nil // newCall says so
	}
	errs := checkProvider(class)
	if _, _, decoding := apis.DecodeProviderSpec(class.ProviderSpec.Raw); len(errs) == 0 {
		if unreadable := checkRegion(class.ProviderSpec.Raw, decoding); unreadable != nil {
			errs = append(errs, unreadable)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return invalidError(errs)
}

// checkRegion returns an error if the spec's region cannot be read; decoding are those of decoding the
// spec.
func checkRegion(raw []byte, decoding field.ErrorList) *field.Error {
	region := apis.SpecPath.Child("region")
	if apis.IsReadable(raw, "region", new(string)) {
		return nil
	}
	for _, err := range decoding {
		if err.Field == region.String() {
			return err
		}
	}
	return field.TypeInvalid(region, field.OmitValueType{}, "must be a string")
}

// decodeSpec says whether the spec's labels could be read.
func (in *inputs) decodeSpec(raw []byte, refuseUnknown bool) (labels bool) {
	var decoding field.ErrorList
	in.Spec, in.Unknown, decoding = apis.DecodeProviderSpec(raw)
	region := apis.SpecPath.Child("region")
	if in.Spec == nil {
		in.Spec = &apis.ProviderSpec{}
	} else if unreadable := checkRegion(raw, decoding); unreadable != nil { // in the Secret's region the server would be missing
		in.needed = append(in.needed, unreadable)
		decoding = slices.DeleteFunc(decoding, func(err *field.Error) bool { return err.Field == region.String() })
	}
	network := validation.ValidateSecretNetwork(in.Spec, in.Secret, apis.SecretPath)
	apis.SetDefaults(in.Spec, in.Secret)

	in.needed = append(in.needed, validation.ValidateRegion(in.Spec.Region, region)...)
	reported := append(slices.Clone(decoding), &field.Error{Field: region.String()})
	if len(network) > 0 {
		reported = append(reported, &field.Error{Field: apis.SpecPath.Child("networking").String()})
	}
	invalid := unrelated(validation.ValidateProviderSpec(in.Spec, apis.SpecPath), reported)
	in.others = slices.Concat(decoding, network, invalid)
	in.network = slices.Concat(network, concerning(apis.SpecPath.Child("networking").String(), in.others))
	if in.network == nil && !apis.IsReadable(raw, "networking", &apis.Networking{}) {
		in.network = decoding
	}
	if refuseUnknown {
		for _, problem := range in.Unknown {
			in.others = append(in.others, field.Invalid(apis.SpecPath, field.OmitValueType{}, problem.Error()))
		}
	}
	return apis.IsReadable(raw, "labels", &map[string]string{})
}

func (in *inputs) unknownText() string {
	var texts []string
	for _, problem := range in.Unknown {
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
	in.identity = newIdentity(name, class, in.Spec.Labels)
	if machine != nil && CameFromOpenStack(machine) {
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
	problem := CredentialsProblem(in.Secret, sessionErr, all)
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

// Credentials are those that the driver opens a session with.
func Credentials(secret *apis.Secret) spi.Credentials {
	return spi.Credentials{
		ProjectID: secret.ProjectID, ServiceAccountKey: secret.ServiceAccountKey,
		ServiceAccountEmail: secret.ServiceAccountEmail, Token: secret.Token, TokenFile: secret.WorkloadIdentityTokenFile,
	}
}

// CredentialsProblem says what is wrong with the Secret's credentials by the error of opening
// a session; nil if they can be used, or one of reported is about them already. Its type is
// field.ErrorTypeRequired if there are none.
func CredentialsProblem(secret *apis.Secret, sessionErr error, reported field.ErrorList) *field.Error {
	var unusable *spi.CredentialsError
	if !errors.As(sessionErr, &unusable) || slices.ContainsFunc(apis.SecretCredentials, func(key string) bool {
		return len(concerning(apis.SecretPath.Child(key).String(), reported)) > 0
	}) {
		return nil
	}
	path := apis.SecretPath.Child(secret.CredentialsKey())
	if errors.Is(sessionErr, spi.ErrNoCredentials) {
		return field.Required(path, fmt.Sprintf("must be the JSON of a key, or set %s with %s or %s",
			apis.SecretServiceAccountEmail, apis.SecretToken, apis.SecretWorkloadIdentityTokenFile))
	}
	return field.Invalid(path, field.OmitValueType{}, unusable.Reason)
}

const (
	// DefaultCreationWait is the longest deadline of CreateMachine and InitializeMachine. A
	// slow cloud boots for longer than 5 minutes; a Machine that is deleted meanwhile waits
	// for the call's end (the manager's v0.62.1 machine.go:638).
	DefaultCreationWait = 10 * time.Minute
	// MinCreationWait is the shortest: a call with less time could not even wait settle for
	// what a lost request made.
	MinCreationWait = time.Minute
	// defaultCreationTimeout is that of the manager's flag --machine-creation-timeout.
	defaultCreationTimeout = 20 * time.Minute

	// deleteTimeout is the deadline of DeleteMachine; callTimeout in reads.go that of calls
	// that wait for nothing.
	deleteTimeout = 10 * time.Minute
)

// creationTimes decide how long a creation may wait.
type creationTimes struct {
	// timeout is the age at which the manager gives a Machine up that names none itself.
	timeout time.Duration
	// wait is the longest deadline of a call.
	wait time.Duration
}

// expires returns when the Machine is older than its creation timeout; the zero time if nobody knows
// its age.
func (t creationTimes) expires(machine *v1alpha1.Machine) time.Time {
	if machine == nil || machine.CreationTimestamp.IsZero() {
		return time.Time{}
	}
	timeout := t.timeout
	if own := machine.Spec.MachineConfiguration; own != nil && own.MachineCreationTimeout != nil {
		timeout = own.MachineCreationTimeout.Duration
	}
	return machine.CreationTimestamp.Add(timeout)
}

// deadline returns how long a call may wait for the Machine's server. A call that ends
// while the server boots shows the user CrashLoopBackOff for a server that is fine; one that
// lasts longer than the Machine may wait keeps the manager from giving the Machine up.
func (t creationTimes) deadline(machine *v1alpha1.Machine, now time.Time) time.Duration {
	expires := t.expires(machine)
	if expires.IsZero() {
		return t.wait
	}
	return max(MinCreationWait, min(expires.Sub(now), t.wait))
}

const (
	// maxMessage is how much of a message of the API is shown, in bytes.
	maxMessage = 4 << 10
	// minRepeated is the length, in bytes, from which the beginning of userData that the API repeats
	// is hidden.
	minRepeated = 16
)

// redacted makes a message of the API fit for logs and for a Machine's status, which many may read. It
// hides userData that the message repeats from its beginning on; "" for calls that send none.
func redacted(message, userData string) string {
	message = message[:min(len(message), maxMessage)]
	message = withoutRepeated(message, formsOf(userData))
	return strings.ToValidUTF8(message, "?")
}

// withoutRepeated replaces what the message repeats of the forms, from their beginning on. Where
// several begin alike, the one that goes on longest counts.
func withoutRepeated(message string, forms []string) string {
	var text strings.Builder
	for start := 0; start < len(message); {
		repeated := 0
		for _, form := range forms {
			repeated = max(repeated, commonPrefix(message[start:], form))
		}
		if repeated < minRepeated {
			text.WriteByte(message[start])
			start++
			continue
		}
		text.WriteString("(userData)")
		start += repeated
	}
	return text.String()
}

// commonPrefix returns how many bytes two texts begin with alike.
func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// formsOf returns userData in the forms in which an API repeats it: as it is, as it was sent, and
// quoted, as Go and as JSON do it.
func formsOf(userData string) []string {
	asSent := base64.StdEncoding.EncodeToString([]byte(userData))
	forms := []string{userData, asSent, withoutQuotes(strconv.Quote(userData))}
	if asJSON, err := json.Marshal(userData); err == nil {
		forms = append(forms, withoutQuotes(string(asJSON)))
	}
	return forms
}

func withoutQuotes(quoted string) string { return quoted[1 : len(quoted)-1] }

// concerning returns those that are about a field, a part of it, or an object with it in it.
func concerning(path string, errs field.ErrorList) (found field.ErrorList) {
	for _, err := range errs {
		if isWithin(err.Field, path) || isWithin(path, err.Field) {
			found = append(found, err)
		}
	}
	return found
}

// unrelated drops those of found that reported is about already.
func unrelated(found, reported field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(found, func(err *field.Error) bool { return len(concerning(err.Field, reported)) > 0 })
}

// isWithin says whether a path is another one, or that of a part of it.
func isWithin(part, whole string) bool {
	rest, within := strings.CutPrefix(part, whole)
	return within && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
