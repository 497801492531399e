// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Reason is the cause of a failed call, as a single word. Every error text for the manager begins
// with a reason, as in "NoCapacity: the machine type is out of stock, …"; only Unimplemented has
// none. Sentences may change, reasons do not. Gardener and the manager classify these texts by
// certain words, so no reason contains NotFound, Conflict, Unauthorized, LimitExceeded, Throttling
// or OutOfRange.
// kubernetes/runbooks.md has the remedy for each reason.
type Reason string

const (
	// ReasonInvalidInput means that the MachineClass, the Secret or the Machine is missing from the
	// request, lacks a required value, or has an invalid one.
	ReasonInvalidInput Reason = "InvalidInput"
	// ReasonInvalidProviderID means that the ProviderID is malformed, or names another project than
	// the Secret.
	ReasonInvalidProviderID Reason = "InvalidProviderID"
	// ReasonRequestRefused means that the API refused a value of the providerSpec that the driver cannot
	// check: the value is invalid, or exceeds a limit of one server.
	ReasonRequestRefused Reason = "RequestRefused"
	// ReasonResourceMissing means that the API answered that the project, the region, or a resource
	// that the server needs (image, network, key pair, ...) does not exist.
	ReasonResourceMissing Reason = "ResourceMissing"
	// ReasonUnknownMachineType means that the region does not have the machine type.
	ReasonUnknownMachineType Reason = "UnknownMachineType"
	// ReasonQuotaExceeded means that a quota of the project is exhausted.
	ReasonQuotaExceeded Reason = "QuotaExceeded"
	// ReasonNoCapacity means that the zone has no room for the machine type.
	ReasonNoCapacity Reason = "NoCapacity"
	// ReasonServersFail means that a server ended in ERROR for a cause that the driver does not know,
	// that another server of the class had ended in ERROR before this one was requested, and that none
	// of the class has run in between.
	ReasonServersFail Reason = "ServersFail"
	// ReasonCredentialsRefused means that the Secret's key or token cannot be used, or was refused by
	// the token endpoint or the API before any read or write of the call succeeded.
	ReasonCredentialsRefused Reason = "CredentialsRefused"
	// ReasonCredentialsRevoked means that the key or token worked at first, and was refused later
	// in the same call.
	ReasonCredentialsRevoked Reason = "CredentialsRevoked"
	// ReasonTokenEndpointDown means that the token endpoint did not answer, or its answer was
	// neither a token nor a valid refusal.
	ReasonTokenEndpointDown Reason = "TokenEndpointDown"
	// ReasonNoPermission means that the service account lacks a permission, or that the project does
	// not exist: STACKIT answers 403 for both.
	ReasonNoPermission Reason = "NoPermission"
	// ReasonTooManyRequests means that the API's rate limit was reached.
	ReasonTooManyRequests Reason = "TooManyRequests"
	// ReasonAPIFailed means that the API did not answer, that its answer was unexpected, or that a
	// gateway answered in its place.
	ReasonAPIFailed Reason = "APIFailed"
	// ReasonNotOurs means that the driver leaves a server alone because it may not be the machine's: a
	// label names another machine or cluster, a label is missing, or an orphan has a tag of OpenStack.
	ReasonNotOurs Reason = "NotOurs"
	// ReasonNotTakenOver means that no server, or more than one, matches a machine that came from
	// OpenStack: none is created, used or deleted.
	ReasonNotTakenOver Reason = "NotTakenOver"
	// ReasonResourceInUse means that a NIC or volume of the MachineClass is attached to another
	// server.
	ReasonResourceInUse Reason = "ResourceInUse"
	// ReasonNoServer means that the server is gone or being deleted, or that this process knows of no
	// ready server of a Machine without a ProviderID.
	ReasonNoServer Reason = "NoServer"
	// ReasonNotReady means that the driver must wait before it can continue: for a server's addresses
	// or labels, for a server to appear in reads, or for a deleted server to be gone.
	ReasonNotReady Reason = "NotReady"
	// ReasonNotInitialized means that the server's NICs lack allowedAddresses.
	ReasonNotInitialized Reason = "NotInitialized"
	// ReasonUpdateIgnored means that the API reported a NIC's update as done, but the NIC is
	// unchanged.
	ReasonUpdateIgnored Reason = "UpdateIgnored"
	// ReasonServerBusy means that another operation on the server or one of its resources is in
	// progress, or that the server's deletion failed.
	ReasonServerBusy Reason = "ServerBusy"
	// ReasonServerFailed means that the server ended in ERROR, and neither quota nor capacity is
	// the cause.
	ReasonServerFailed Reason = "ServerFailed"
	// ReasonCreationTimedOut means that the machine is older than its creation timeout and has no
	// server.
	ReasonCreationTimedOut Reason = "CreationTimedOut"
	// ReasonTimedOut means that the call exceeded its deadline.
	ReasonTimedOut Reason = "TimedOut"
	// ReasonInterrupted means that the call was cancelled, that another call is creating the machine's
	// server, or that the server was deleted while the call waited for it.
	ReasonInterrupted Reason = "Interrupted"
	// ReasonNoSession means that the call has no Secret, and no earlier call opened a session for
	// its project.
	ReasonNoSession Reason = "NoSession"
	// ReasonDriverBug means that the driver panicked, or returned an error that it cannot classify.
	ReasonDriverBug Reason = "DriverBug"
)

// reasonCodes maps each reason to the code for the manager. The code determines when the manager
// retries (its machine_util.go): Unavailable, Aborted and DeadlineExceeded are retried after 5 s,
// ResourceExhausted after a period of its own, all others after minutes.
var reasonCodes = map[Reason]codes.Code{
	ReasonInvalidInput:       codes.InvalidArgument,
	ReasonInvalidProviderID:  codes.InvalidArgument,
	ReasonRequestRefused:     codes.InvalidArgument,
	ReasonResourceMissing:    codes.InvalidArgument,
	ReasonUnknownMachineType: codes.ResourceExhausted, // only this code makes the cluster autoscaler try another pool
	ReasonQuotaExceeded:      codes.ResourceExhausted,
	ReasonNoCapacity:         codes.ResourceExhausted,
	ReasonServersFail:        codes.ResourceExhausted, // another pool may have a host that can run them
	ReasonCredentialsRefused: codes.Unauthenticated,
	ReasonCredentialsRevoked: codes.Unavailable,
	ReasonTokenEndpointDown:  codes.Unavailable,
	ReasonNoPermission:       codes.PermissionDenied,
	ReasonTooManyRequests:    codes.Unavailable,
	ReasonAPIFailed:          codes.Unavailable,
	ReasonNotOurs:            codes.FailedPrecondition,
	ReasonNotTakenOver:       codes.FailedPrecondition,
	ReasonResourceInUse:      codes.FailedPrecondition,
	ReasonNoServer:           codes.NotFound,
	ReasonNotReady:           codes.Unavailable,
	ReasonNotInitialized:     codes.Uninitialized,
	ReasonUpdateIgnored:      codes.Internal,
	ReasonServerBusy:         codes.Aborted,
	ReasonServerFailed:       codes.Internal,
	ReasonCreationTimedOut:   codes.FailedPrecondition,
	ReasonTimedOut:           codes.DeadlineExceeded,
	ReasonInterrupted:        codes.Aborted,
	ReasonNoSession:          codes.FailedPrecondition,
	ReasonDriverBug:          codes.Internal,
}

// Reasons returns all reasons, sorted.
func Reasons() []Reason { return slices.Sorted(maps.Keys(reasonCodes)) }

// Code returns the code that the manager gets with the reason; Internal for an unknown reason. An
// error with the reason NoCapacity or UnknownMachineType has the code Unavailable instead while the
// class has a fallback left.
func (r Reason) Code() codes.Code {
	if code, known := reasonCodes[r]; known {
		return code
	}
	return codes.Internal
}

// ReasonIn returns the reason at the start of one of the driver's error texts. The text may be a
// Machine's status.lastOperation.description, where the manager wraps it. "" means that the text
// has no reason, as in the manager's own texts and those of driver versions without reasons.
func ReasonIn(description string) Reason {
	text := description
	if _, message, wrapped := strings.Cut(description, "message = ["); wrapped {
		text = message
	}
	word, _, found := strings.Cut(text, ": ")
	if _, known := reasonCodes[Reason(word)]; !found || !known {
		return ""
	}
	return Reason(word)
}

// Error is an error whose reason the driver itself decided, such as the refusal of another machine's
// server. Classify derives the reason of all other errors.
type Error struct {
	// Reason determines the code, and so when the manager retries.
	Reason Reason
	// Text describes what happened, the server concerned, and the remedy.
	Text string
	// Label is the key of the label or OpenStack tag because of which a server was refused as not the
	// machine's; "" for any other failure.
	Label string
	// isRetried reports whether the next call tries another choice. The code is then Unavailable,
	// so that the manager calls again within seconds.
	isRetried bool
	err       error
}

// Error returns the reason and Text in a form that is safe to log: one line of limited length.
func (e *Error) Error() string { return sanitize(e.Reason.with(e.Text)) }

func (e *Error) Unwrap() error { return e.err }

// with prepends the reason to a text, in the form that ReasonIn reads.
func (r Reason) with(text string) string { return string(r) + ": " + text }

// newError returns an *Error. Errors in args are rewritten so that the API's words fit the reason.
func newError(reason Reason, format string, args ...any) error {
	for i, arg := range args {
		if err, ok := arg.(error); ok {
			args[i] = reason.plain(err.Error())
		}
	}
	return &Error{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// maxErrors is more than a text has room for: joining 100,000 errors takes minutes.
const maxErrors = 32

// invalidError returns all errors; if they are too long for a text, the first one and all fields.
func invalidError(errs field.ErrorList) error {
	text := errs[:min(len(errs), maxErrors)].ToAggregate().Error()
	if len(errs) > maxErrors || len(ReasonInvalidInput.with(text)) > maxText {
		var fields []string
		for _, err := range errs {
			fields = append(fields, err.Field)
		}
		text = fmt.Sprintf("%d fields are invalid; the first: %v; all: %s", len(errs), errs[0], strings.Join(fields, ", "))
	}
	return newError(ReasonInvalidInput, "%s", text)
}

// notOurs returns the refusal of a server whose label does not have the value want.
func notOurs(server *Server, label, want string) error {
	is := fmt.Sprintf("%q", server.Labels[label])
	if _, ok := server.Labels[label]; !ok {
		is = "missing"
	}
	must := fmt.Sprintf("%q", want)
	if want == "" {
		must = "absent, or set in providerSpec.labels"
	}
	return &Error{Reason: ReasonNotOurs, Label: label, Text: fmt.Sprintf(
		"server %s (%s) is not this machine's and is left alone: its label %s is %s: must be %s; "+
			"restore the label if the server belongs to the machine",
		server.ID, server.Name, label, is, must)}
}

var (
	// errGone means that a server is proved gone.
	errGone = errors.New("the server is gone")
	// errUnusable means that there is no server that this call can use: none is known or found, or it
	// is gone, being deleted, or another owner's. It does not allow a POST.
	errUnusable = errors.New("the server cannot be used")
	// errFaulty means that a server ended in ERROR.
	errFaulty = errors.New("the server is in ERROR")
	// errOutcomeUnknown means that a POST may or may not have created a server.
	errOutcomeUnknown = errors.New("unknown whether a server was created")
)

// isNotOurs reports whether a server was refused because it is not the machine's.
func isNotOurs(err error) bool {
	var decided *Error
	return errors.As(err, &decided) && decided.Reason == ReasonNotOurs
}

// lateError returns the error of a wait that ended too early: state is the last known one.
func lateError(err error, state string) error {
	if errors.Is(err, context.Canceled) {
		return &Error{Reason: ReasonInterrupted, Text: "the call was cancelled: " + ReasonInterrupted.plain(state), err: err}
	}
	return &Error{Reason: ReasonTimedOut,
		Text: "the call reached its deadline, and the next call continues: " + ReasonTimedOut.plain(state), err: err}
}

// interruptedError returns the error of a wait whose credentials were refused: the manager retries
// within seconds, with the then current Secret.
func interruptedError(err error) error {
	return &Error{Reason: ReasonCredentialsRevoked, err: err,
		Text: "the Secret's credentials are no longer accepted, " +
			"check its service-account key or workload identity: " + ReasonCredentialsRevoked.plain(err.Error())}
}

// faultyError returns the error of a server that ended in ERROR. The API's message about it is
// classified like the answer to a POST.
func faultyError(server *Server, spec *apis.ProviderSpec) error {
	return &APIError{Call: callRunServer, Message: server.ErrorMessage,
		Err: fmt.Errorf("server %s ended in state ERROR: %w", server.ID, server.reason(spec))}
}

// Messages of the services behind the API. STACKIT publishes no list: these are the words of Nova,
// Neutron, Cinder and placement, of STACKIT's pages, and of other clouds for the same. All others
// lead to ReasonServersFail.
var (
	// quotaExceeded also matches "No more IP addresses available on network …" (Neutron), "Maximum
	// number of ports exceeded" and "VolumeLimitExceeded: Maximum number of volumes allowed (10)
	// exceeded".
	quotaExceeded = words(
		`\bquotas?\b.{0,60}\b(exceeded|exceeds?|reached|met|used up|exhausted|(in|not )sufficient)\b`,
		`\bno (more |free |remaining |available )?quota (is )?(left|remaining|available)\b|`+
			`\bno (more|free|remaining) quota\b|\bno quota for\b|\bover[-_]?quota`,
		`quota_?exceeded|exceedsavailablequota`,
		`\b(exceed(ed|s|ing)?|reached|insufficient|not enough|out of|over|beyond)\b (\S+ ){0,4}?quotas?\b`,
		`\b(volume|snapshot|gigabytes?|backup|instance|server|vcpu|core|ram|`+
			`keypair|floatingip|port|network|project|resource)s?_?limit_?exceeded`,
		`no (more|free) (fixed |floating )?ip`,
		`no available (fixed |floating )?ip addresses`,
		`no (fixed |floating )?ip addresses (are )?available`,
		`ipaddressgenerationfailure`,
		`\b(ip|address)\w* pool( \S+)? (is |are )?exhausted`,
		`maximum number of `+counted+`\b.{0,40}\b(exceeded|reached)`,
		`too many (servers|instances|machines) in (the|this|your) (project|account)`,
		`\b(`+counted+`|project|account|organi[sz]ation)('s)? limit\b.{0,30}\b(reached|exceeded|exhausted|hit)\b`,
		`\blimit (of|for|on) (the |this |your |\d+ )?(`+counted+`|project|account)\b.{0,20}`+
			`\b(reached|exceeded|exhausted|hit)\b`,
		`\b(reached|exceeded|exceeds|hit) (the |its |this |your )?(\S+ )?limit (of|for|on) `+counted+`\b`,
		`than your current (\S+ )?limit`,
	)
	// limitOfServer matches a limit of one server: another pool or a larger quota would not help.
	limitOfServer = words(
		`disk devices.*exceed|exceed.*disk devices`,
		`metadata.*exceed|exceed.*metadata`,
		`address pairs?.*exceed|exceed.*address pairs?`,
		`\b(injected|onset) ?files?.*exceed|exceed.*\binjected files?`,
		`(attachment|networkinterface|onsetfile)s?limitexceeded`,
		`\b(limit|exceed\w*|maximum|too many)\b.{0,60}`+ofOne,
		ofOne+`.{0,60}\b(limit|exceed\w*|reached)\b`,
	)
	// quotaOfCalls matches a limit of calls, or a quota that could not be read.
	quotaOfCalls = words(
		`\brate\b.{0,20}(limit|quota|exceed)`,
		`rate ?limit|request ?limit|quota of requests|too many requests|requests? (per|quota)`,
		`throttl|\bapi calls\b|deadline exceeded|time-?out|retries|attempts|permission|privilege|\b(scopes?|rights)\b`,
	)
	// noHost matches the scheduler and conductor ("No valid host was found", "Exhausted all hosts
	// available for retrying build failures", "Exceeded max scheduling attempts 3"), placement and the
	// claims of a host ("Insufficient compute resources: …", "Claim pci failed").
	noHost = words(
		`no ?(valid|available|suitable|compatible|matching|eligible|free) ?(compute )?(hosts?|hypervisors?|backend)\b`,
		`no (compute )?(hosts?|hypervisors?) (is |are |was |were )?(available|free|left|found|compatible)`,
		`(unable|failed) to find a (suitable|valid) host`,
		`not enough (\w+ )?hosts`,
		`exhausted all (\w+ )?hosts`,
		`scheduling attempts`,
		`error during placement|no allocation candidates`,
		`insufficient (compute|host|physical) resources|insufficient\w*capacity|(not|n't) have sufficient (\S+ )?capacity`,
		`\binsufficient resources in\b|\bno resources (are )?available\b|\bzone( \S+)? is exhausted\b`,
		`\b(no|not enough|insufficient|lack of|out[ _-]of|short of|shortage of|without|lacks)[ _-](\S+ ){0,3}?capacity\b`,
		`\bcapacity (\S+ ){0,4}?(exceeded|exhausted|reached|insufficient|unavailable|not available)\b|`+
			`\bat (full )?capacity\b`,
		`exceed\w* (the |available |total |host |zone )*capacity`,
		`out[ _-]of[ _-](stock|hosts)|sold[ _-]?out|stock-?out`,
		`(not|n't) (have )?enough (free |available |compute |host )*(resources|memory|ram|v?cpus?|cores|gpus?)\b`,
		`resource_pool_exhausted|\bresource_unavailable\b|`+
			`compute resources (are )?(currently |temporarily )?(unavailable|exhausted)|`+
			`\bresources (are )?(currently |temporarily )?(unavailable|not available|exhausted) in (\S+ ){0,2}zone\b`,
		`affinity\b.{0,40}\bpolicy was violated|affinity.{0,40}(cannot|could not) be (met|satisfied|fulfilled)`,
		`\bclaim (pci )?failed|pci ?device ?request.{0,60}failed|cannot fit the given host|no available v?gpu`,
		`unable to (allocate inventory|create allocation)|`+
			`(unable|failed) to place (the |an? )?(server|instance|vm|machine)\b`,
		`not available in the current hardware cluster|skunotavailable`,
		`\b(sku|machine type|flavou?r|instance type|server type)( \S+)? `+
			`(is |was )?(currently |temporarily )?(not |un)(currently )?available\b`,
	)
	// notHosts matches words that give noHost's another meaning. Apache's pages speak of "capacity
	// problems" (503) and of a "capacity limit" (413).
	notHosts = words(`permission|privilege|queue|unlimited|capacity limit`)
	// noMachineType matches the API's "machine type is not valid" with or without a name, its "resource
	// not found: …" of other resources, and Nova's "Flavor … could not be found".
	noMachineType = words(
		`\b(machine[ -]?type|flavou?r)( with (id|name))?( \S+)? ((is|was|could|does|has been) )?`+
			`(not (be )?(valid|found|exist)|invalid|unknown|discontinued|no longer available)\b`,
		`\bnot found:\s*(machine[ -]?type|flavou?r)\b|\b(invalid|unknown|no such) (machine[ -]?type|flavou?r)(ref)?\b|`+
			`\bno (machine[ -]?type|flavou?r) (was )?found\b`,
	)
	// aboutPlace matches a 404 about the project or region instead of the call's resource: a server
	// may be "not found in project …", a "project network" missing.
	aboutPlace = words(
		`^\s*((the|requested) )*(project|region)( with id)?( \S*\d\S*)? ((is|was|could|does) )?`+
			`(not |un)(be )?(found|exist|known)`,
		`\b(project|region) ((was|could|does) )?not (be )?(found|exist)|`+
			`\bnot found:\s*(project|region)\b|\b(unknown|no such) (project|region)\b`,
	)
)

const (
	// counted matches resources of a project that have a quota.
	counted = `(v?cpus?|cores?|ram|gpus?|instances?|servers?|machines?|volumes?|snapshots?|gigabytes?|storage|` +
		`floating ips?|networks?|ports?|nics?|addresses)`
	// ofOne matches words for one server, NIC or volume.
	ofOne = `\b(per[ -](server|instance|machine|vm|nic|port|volume)|` +
		`(to|on|for) (one|this|a single) (server|instance|vm)|attached to (the |a )?server|for the network interface)\b`
	// maxDecisive limits the part of a message that is searched, in bytes: regular expressions take a
	// second for a megabyte. maxForeign is the same for an answer in another form.
	maxDecisive, maxForeign = 16 << 10, 4 << 10
)

func words(patterns ...string) *regexp.Regexp {
	return regexp.MustCompile("(?is)" + strings.Join(patterns, "|"))
}

// isLimitOfServer reports whether a limit of one server is reached, so that another pool would not
// help.
func isLimitOfServer(message string) bool {
	return limitOfServer.MatchString(message) && !noHost.MatchString(message)
}

// isNoHost reports whether the message means that no host has room.
func isNoHost(message string) bool {
	return noHost.MatchString(message) && !notHosts.MatchString(message) && !quotaExceeded.MatchString(message)
}

// isQuota reports whether the message means that a quota of the project is exhausted.
func isQuota(message string) bool {
	return quotaExceeded.MatchString(message) && !quotaOfCalls.MatchString(message)
}

// foreignCause returns the cause in an answer that is not in the API's form: its gateway passes on
// messages about quota and hosts from the services behind the API. The body itself is never shown.
// A page with scripts or styles is made for browsers, and ignored.
func foreignCause(body []byte) string {
	message := string(body[:min(len(body), maxForeign)])
	switch {
	case bytes.Contains(body, []byte("<script")), bytes.Contains(body, []byte("<style")), isLimitOfServer(message):
		return ""
	case isNoHost(message):
		return "not enough hosts"
	case isQuota(message):
		return "quota exceeded"
	default:
		return ""
	}
}

// rule is a row of the table from failures to reasons.
type rule struct {
	reason Reason
	// prefix precedes the error in the text; "" for the error alone.
	prefix  string
	matches func(*failure) bool
}

// failure is an error in the form that the rules match.
type failure struct {
	err error
	// api is the failed API call; nil if there was none.
	api *APIError
}

// status reports whether the API itself answered one of the codes.
func (f *failure) status(codes ...int) bool {
	return f.api != nil && slices.Contains(codes, f.api.Status())
}

func (f *failure) during(calls ...apiCall) bool {
	return f.api != nil && slices.Contains(calls, f.api.Call)
}

// ofServer reports whether says matches the message of the API, or the cause that its gateway
// passes on, about a server that it cannot create or run.
func (f *failure) ofServer(says func(message string) bool) bool {
	if !f.during(callCreateServer, callRunServer) {
		return false
	}
	message := cmp.Or(f.api.Message, f.api.foreignCause)
	return says(message[:min(len(message), maxDecisive)])
}

func (f *failure) clientError() bool {
	return f.api != nil && f.api.Status() >= http.StatusBadRequest && f.api.Status() < http.StatusInternalServerError
}

// rules is the only table that maps a failed call to its reason and text: the first matching row
// counts, and the last one matches everything. Gardener classifies errors by words in these texts
// (sortedWords).
var rules = []rule{
	{ReasonRequestRefused, "the providerSpec exceeds a limit of one server, check the providerSpec",
		func(f *failure) bool {
			return f.ofServer(isLimitOfServer) || f.during(callUpdateNIC) && limitOfServer.MatchString(f.api.Message)
		}},
	{ReasonNoCapacity, "the machine type is out of stock, no host of the zone has room for it",
		func(f *failure) bool { return f.ofServer(isNoHost) }},
	{ReasonQuotaExceeded, "Quota exceeded",
		func(f *failure) bool { return f.ofServer(isQuota) }},
	{ReasonServerFailed, "",
		func(f *failure) bool { return f.during(callRunServer) }},
	{ReasonUnknownMachineType,
		"the region does not have the machine type, set an existing one in the providerSpec",
		func(f *failure) bool {
			return f.during(callCreateServer) && f.clientError() && noMachineType.MatchString(f.api.Message)
		}},
	{ReasonCredentialsRefused, "Authentication failed, check the Secret's service-account key or workload identity",
		func(f *failure) bool { return isRefused(f.err) }},
	{ReasonTokenEndpointDown, "",
		func(f *failure) bool {
			var token *spi.TokenError
			return errors.As(f.err, &token)
		}},
	{ReasonInterrupted, "",
		func(f *failure) bool { return errors.Is(f.err, context.Canceled) }},
	{ReasonTimedOut, "",
		func(f *failure) bool { return errors.Is(f.err, context.DeadlineExceeded) }},
	{ReasonNoPermission,
		"the service account is not authorized: check that the account of secret.serviceAccountKey (or of the workload " +
			"identity) has the required roles in the project secret.projectId",
		func(f *failure) bool { return f.status(http.StatusForbidden) }},
	{ReasonRequestRefused, "the API refused the request, check the providerSpec",
		func(f *failure) bool {
			return f.during(callCreateServer, callUpdateNIC) &&
				f.status(http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity)
		}},
	{ReasonResourceMissing,
		"a resource in the providerSpec or Secret was not found (image, network, key pair, ...)",
		func(f *failure) bool {
			return f.during(callCreateServer) && f.status(http.StatusNotFound, http.StatusGone) &&
				!aboutPlace.MatchString(f.api.Message)
		}},
	{ReasonNoServer, "",
		func(f *failure) bool { return isServerNotFound(f.err) }},
	{ReasonResourceInUse, "a NIC or volume in the providerSpec is in use",
		func(f *failure) bool {
			return f.during(callCreateServer) && f.api.isExclusive && f.status(http.StatusConflict)
		}},
	{ReasonServerBusy, "the server or a resource that it needs is busy; the next call retries",
		func(f *failure) bool { return f.status(http.StatusConflict) }},
	{ReasonTooManyRequests, "Too many requests",
		func(f *failure) bool { return f.api != nil && f.api.StatusCode == http.StatusTooManyRequests }},
	{ReasonAPIFailed, "",
		func(f *failure) bool { return f.api != nil }},
	{ReasonDriverBug, "",
		func(*failure) bool { return true }},
}

// Classify returns the code and the text that the manager gets for an error of the driver. The text
// is one line of at most 512 bytes that begins with the reason, as in "NoCapacity: the machine type
// is out of stock, …". err must not be nil.
func Classify(err error) (codes.Code, string) {
	var decided *Error
	if errors.As(err, &decided) {
		if decided.isRetried {
			return codes.Unavailable, decided.Error()
		}
		return decided.Reason.Code(), decided.Error()
	}
	rule := &rules[ruleOf(err)]
	text := rule.reason.plain(err.Error())
	if rule.prefix != "" {
		text = rule.prefix + ": " + text
	}
	return rule.reason.Code(), sanitize(rule.reason.with(text))
}

// ruleOf returns the index of the first rule that matches an error.
func ruleOf(err error) int {
	seen := &failure{err: err}
	errors.As(err, &seen.api)
	return slices.IndexFunc(rules, func(row rule) bool { return row.matches(seen) })
}

// isServerNotFound reports whether the API itself, not a gateway, answered that a server does not
// exist. An answer about the project or region does not count.
func isServerNotFound(err error) bool {
	var api *APIError
	return errors.As(err, &api) && (api.Call == callGetServer || api.Call == callDeleteServer) && api.saysNotFound()
}

// IsNotFound reports whether the API itself answered that the requested resource does not exist. A
// gateway's answer does not count, nor does an answer about the project or region.
func IsNotFound(err error) bool {
	var api *APIError
	return errors.As(err, &api) && api.saysNotFound()
}

// saysNotFound reports whether the IaaS API itself answered that the call's resource, not the
// project or region, does not exist. Gateways write other 404s.
func (e *APIError) saysNotFound() bool {
	return e.isMissing() && e.isOfIaaS && !aboutPlace.MatchString(e.Message)
}

func (e *APIError) isMissing() bool {
	return e.Status() == http.StatusNotFound || e.Status() == http.StatusGone
}

// IsPlaceMissing reports whether the IaaS API answered that the project or region does not exist.
// Every 404 to a list of servers means this.
func IsPlaceMissing(err error) bool {
	var api *APIError
	return errors.As(err, &api) && api.isMissing() && api.isOfIaaS &&
		(api.Call == callListServers || aboutPlace.MatchString(api.Message))
}

// statusOf returns the status with which the API itself answered a failed call; 0 if it did not.
func statusOf(err error) int {
	var api *APIError
	if errors.As(err, &api) {
		return api.Status()
	}
	return 0
}

// isForbidden reports whether the API answered 403.
func isForbidden(err error) bool { return statusOf(err) == http.StatusForbidden }

// isRefused reports whether the credentials were refused, by the token endpoint or
// (with a new token) by the API.
func isRefused(err error) bool {
	return spi.IsRefused(err) || statusOf(err) == http.StatusUnauthorized
}

// isExhausted reports whether an error is about quota, capacity or a machine type that does not exist.
func isExhausted(err error) bool {
	if err == nil {
		return false
	}
	code, _ := Classify(err)
	return code == codes.ResourceExhausted
}

// isAboutChoice reports whether an error is about a machine type or zone, so that another one may
// have room; a quota holds for all.
func isAboutChoice(err error) bool {
	_, text := Classify(err)
	return slices.Contains([]Reason{ReasonNoCapacity, ReasonUnknownMachineType}, ReasonIn(text))
}

// outcomeUnknown reports whether a failed POST may have created a server: unless the API refused
// it, or it was never sent. 429 is a refusal in any form.
func outcomeUnknown(err error) bool {
	var api *APIError
	if !errors.As(err, &api) {
		return true
	}
	var notSent *spi.NotSentError
	switch {
	case errors.As(err, &notSent), api.StatusCode == http.StatusTooManyRequests:
		return false
	case api.Status() == http.StatusRequestTimeout:
		return true
	default:
		return api.Status() < http.StatusBadRequest || api.Status() >= http.StatusInternalServerError
	}
}

// maxText limits an error's text in a Machine's status, in bytes.
const maxText = 512

// plain replaces words of the API or of a connection error by which Gardener or the manager would
// classify the text differently from its reason. In the driver's own texts only names of Machines
// and labels contain such words, and stay unchanged.
func (r Reason) plain(text string) string {
	text = oneLine(text)
	for _, sorted := range sortedWords {
		if !slices.Contains(sorted.meant, r) {
			text = sorted.pattern.ReplaceAllString(text, sorted.instead)
		}
	}
	return text
}

// sanitize returns a text that is safe for a Machine's status and for logs: one line of limited
// length.
func sanitize(text string) string {
	text = oneLine(text)
	if len(text) <= maxText {
		return text
	}
	const ellipsis = "..."
	return strings.ToValidUTF8(text[:maxText-len(ellipsis)], "") + ellipsis
}

// oneLine returns a text as printable, with other brackets, because the manager's parser reads the code
// between them.
func oneLine(text string) string {
	return strings.NewReplacer("[", "(", "]", ")").Replace(printable(text))
}

// printable returns a text from outside as one line without control characters: the manager's log and kubectl
// show it unchanged, so it could command a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " "))
}

var invalidReasons = []Reason{ReasonInvalidInput, ReasonInvalidProviderID, ReasonRequestRefused, ReasonResourceMissing}

// sortedWords are the words by which Gardener and the manager classify the text of a Machine's
// status. Gardener's extension for STACKIT (87ca8d5, pkg/apis/stackit/helper/error_codes.go) maps
// them to error codes, and for most of those codes Gardener stops retrying a Shoot's operation. The
// manager looks for OutOfRange and NotFound (machine_safety.go). The API uses such words with other
// meanings, too: a word stays if the reason means the same, otherwise it is replaced.
var sortedWords = []struct {
	pattern *regexp.Regexp
	instead string
	meant   []Reason
}{
	{words(`authentication failed|invalid_client|invalidsecretaccesskey`), "not authenticated",
		[]Reason{ReasonCredentialsRefused}},
	{words(`cannot fetch token`), "no token", []Reason{ReasonCredentialsRefused}},
	{words(`invalid character`), "unreadable text", nil},
	{words(`unauthorized|invalid_grant`), "not authenticated", []Reason{ReasonCredentialsRefused, ReasonNoPermission}},
	{words(`not authorized|signaturedoesnotmatch|accessdenied|policynotauthorized|authorization profile was not found|` +
		`no active subscriptions`), "not allowed", []Reason{ReasonNoPermission}},
	{words(`requestlimitexceeded|throttling|too many requests`), "limit of requests", []Reason{ReasonTooManyRequests}},
	{words(`limitexceeded|maximum number of ports exceeded`), " limit reached", []Reason{ReasonQuotaExceeded}},
	{words(`quota`), "allowance", []Reason{ReasonQuotaExceeded}},
	{words(`there are not enough hosts available`), "too few hosts", nil},
	{words(`out of stock|not available in the current hardware cluster`), "not available", []Reason{ReasonNoCapacity}},
	{words(`conflict`), "clash", []Reason{ReasonResourceInUse}},
	{words(`a resource with the id`), "a resource of ID", nil},
	{words(`already busy for`), "busy for", nil},
	{words(`dependencyviolation|optinrequired|pendingverification|access not configured|accessnotconfigured|` +
		`inactive billing state|invalidcidrblock|no router found|service not enabled`), "a dependency is missing", nil},
	{words(`timeout while waiting for state to become`), "timeout before the state was", nil},
	{words(`retryableerror|internal server error`), "error inside the API", []Reason{ReasonAPIFailed}},
	{words(`notfound`), "not found", nil},
	{words(`outofrange`), " out of range", nil},
	{words(`invalid value`), "wrong value", invalidReasons},
	{words(`policy doesn't allow`), "policy forbids", nil},
	{words(`error during apply of object`), "error in applying object", nil},
	{words(`missing expected router|overlaps with cidr|not supported in your requested availability zone|` +
		`violates constraint|no attached internet gateway found|your query returned no results|invalid vpc attributes|` +
		`unrecognized feature gate|runtime-config invalid key|strict decoder error|` +
		`not allowed to configure an unsupported|duplicate zones|overlapping zones`),
		"wrong configuration", invalidReasons},
	{words(`is misconfigured and requires zero voluntary evictions|sdk.cannotresolveendpoint|` +
		`the requested configuration is currently not supported`), "not supported", nil},
}
