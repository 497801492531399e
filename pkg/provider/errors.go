// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Reason is the cause of a failed call, as a single word. Every error text for the manager is
// "Reason: sentence: the API's message", as in "NoCapacity: the machine type is out of stock, …"; only
// Unimplemented has none. Sentences may change, reasons do not. Gardener and the manager sort these
// texts by certain words, so no reason contains NotFound, Conflict, Unauthorized, LimitExceeded,
// Throttling or OutOfRange, and a sentence only words of the class that its code means; the API's
// message is passed on as it is. kubernetes/runbooks.md has the remedy for each reason.
type Reason string

// Reasons, each with what it means.
const (
	// ReasonInvalidInput: the MachineClass, Secret, Machine or ProviderID of a request is missing or invalid.
	ReasonInvalidInput Reason = "InvalidInput"
	// ReasonRequestRefused: the API refused a value of the providerSpec, or it exceeds a limit of one server.
	ReasonRequestRefused Reason = "RequestRefused"
	// ReasonResourceMissing: the project, region, image, network, key pair or the like does not exist.
	ReasonResourceMissing Reason = "ResourceMissing"
	// ReasonUnknownMachineType: the region does not have the machine type.
	ReasonUnknownMachineType Reason = "UnknownMachineType"
	// ReasonQuotaExceeded: a quota of the project is exhausted.
	ReasonQuotaExceeded Reason = "QuotaExceeded"
	// ReasonNoCapacity: the zone has no room for the machine type.
	ReasonNoCapacity Reason = "NoCapacity"
	// ReasonServersFail: a second server of the class ended in ERROR for an unknown cause, and none has run since
	// the first one.
	ReasonServersFail Reason = "ServersFail"
	// ReasonCredentialsRefused: the Secret's key or token cannot be used, or was refused by the token endpoint or the
	// API.
	ReasonCredentialsRefused Reason = "CredentialsRefused"
	// ReasonTokenEndpointDown: the token endpoint answered neither a token nor a refusal.
	ReasonTokenEndpointDown Reason = "TokenEndpointDown"
	// ReasonNoPermission: the service account lacks a permission, or the project does not exist: STACKIT answers 403
	// for both.
	ReasonNoPermission Reason = "NoPermission"
	// ReasonTooManyRequests: the API's rate limit was reached.
	ReasonTooManyRequests Reason = "TooManyRequests"
	// ReasonAPIFailed: the API did not answer, or unexpectedly, or a gateway answered in its place.
	ReasonAPIFailed Reason = "APIFailed"
	// ReasonNotOurs: a server is left alone because it may not be the machine's: a label names another machine or
	// cluster or is missing, or an orphan has a tag of OpenStack.
	ReasonNotOurs Reason = "NotOurs"
	// ReasonNotTakenOver: no server, or more than one, matches a machine that came from OpenStack.
	ReasonNotTakenOver Reason = "NotTakenOver"
	// ReasonResourceInUse: a NIC or volume of the MachineClass is attached to another server.
	ReasonResourceInUse Reason = "ResourceInUse"
	// ReasonNoServer: the server is gone or being deleted, or none is known that is ready.
	ReasonNoServer Reason = "NoServer"
	// ReasonNotReady: the driver must wait: for addresses, for an update or a server to show, or for a deleted
	// server to be gone.
	ReasonNotReady Reason = "NotReady"
	// ReasonNotInitialized: the server's NICs lack allowedAddresses.
	ReasonNotInitialized Reason = "NotInitialized"
	// ReasonServerBusy: another operation on the server or one of its resources is in progress, or its DELETE has
	// no effect.
	ReasonServerBusy Reason = "ServerBusy"
	// ReasonServerFailed: the server ended in ERROR, and neither quota nor capacity is the cause.
	ReasonServerFailed Reason = "ServerFailed"
	// ReasonCreationTimedOut: the machine is older than its creation timeout and has no server.
	ReasonCreationTimedOut Reason = "CreationTimedOut"
	// ReasonTimedOut: the call exceeded its deadline.
	ReasonTimedOut Reason = "TimedOut"
	// ReasonInterrupted: the call was cancelled, another call is creating the machine's server, or the server was
	// deleted while the call waited for it.
	ReasonInterrupted Reason = "Interrupted"
	// ReasonDriverBug: the driver panicked, or returned an error that it cannot classify.
	ReasonDriverBug Reason = "DriverBug"
)

// reasonCodes maps each reason to the code for the manager. The code determines when the manager
// retries (its machine_util.go): Unavailable, Aborted and DeadlineExceeded are retried after 5 s,
// ResourceExhausted after a period of its own, all others after minutes.
var reasonCodes = map[Reason]codes.Code{
	ReasonInvalidInput:       codes.InvalidArgument,
	ReasonRequestRefused:     codes.InvalidArgument,
	ReasonResourceMissing:    codes.InvalidArgument,
	ReasonUnknownMachineType: codes.ResourceExhausted, // only then the cluster autoscaler tries another pool
	ReasonQuotaExceeded:      codes.ResourceExhausted,
	ReasonNoCapacity:         codes.ResourceExhausted,
	ReasonServersFail:        codes.ResourceExhausted, // another pool may have a host that can run them
	ReasonCredentialsRefused: codes.Unauthenticated,
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
	ReasonServerBusy:         codes.Aborted,
	ReasonServerFailed:       codes.Internal,
	ReasonCreationTimedOut:   codes.FailedPrecondition,
	ReasonTimedOut:           codes.DeadlineExceeded,
	ReasonInterrupted:        codes.Aborted,
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

// Error is an error with its reason.
type Error struct {
	// Reason determines the code, and so when the manager retries.
	Reason Reason
	// Text is the sentence, and the API's message if there is one.
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
func (e *Error) Error() string { return sanitize(string(e.Reason) + ": " + e.Text) }

func (e *Error) Unwrap() error { return e.err }

// newError returns an *Error; format may wrap errors.
func newError(reason Reason, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Reason: reason, Text: err.Error(), err: errors.Unwrap(err)}
}

// invalidError returns all errors; if they are too long for a text, the first one and all fields.
func invalidError(errs field.ErrorList) error {
	text := errs.ToAggregate().Error()
	if len(text) > maxText-len(ReasonInvalidInput)-len(": ") {
		var fields []string
		for _, err := range errs {
			fields = append(fields, err.Field)
		}
		text = fmt.Sprintf("%d fields are invalid; the first: %v; all: %s", len(errs), errs[0], strings.Join(fields, ", "))
	}
	return newError(ReasonInvalidInput, "%s", text)
}

var (
	// errGone means that a server is proved gone.
	errGone = errors.New("the server is gone")
	// errUnusable means that there is no server that this call can use: none is known or found, or it
	// is gone or being deleted. It does not allow a POST.
	errUnusable = errors.New("the server cannot be used")
	// errFaulty means that a server ended in ERROR.
	errFaulty = errors.New("the server is in ERROR")
)

// Messages of the services behind the API. STACKIT publishes no list: these are the words of Nova,
// Neutron, Cinder and placement, and of STACKIT's pages.
var (
	// envelope is Nova's text around the cause for which the last host could not run a server.
	envelope = words(`exceeded max(imum number of retries| scheduling attempts).*?(last exception:(.*))?$`)
	// quotaWords also match "VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded".
	quotaWords = words(
		`\bquotas?( \w+){0,4} (exceeded|exceeds?|reached|met|exhausted|insufficient)\b`,
		`\b(exceed(ed|s|ing)?|reached|insufficient|not enough|over)\b.{0,40}\bquotas?\b|quota_?exceeded`,
		`maximum number of \w+ .{0,20}\bexceeded\b|\b\w+limit_?exceeded\b`,
		`no more ip addresses available|ipaddressgenerationfailure`,
	)
	// notQuotas match a limit of calls or of one server, and a quota that could not be read.
	notQuotas = words(
		`\brate\b|\brequests?\b.{0,20}\b(quota|limit|exceed)|\b(api|request\w*) ?(calls|limit)|too many requests|throttl`,
		`permission|privilege|\bscopes?\b`,
	)
	limitOfServer = words(
		`\bper (server|instance|port|nic)\b|(disk devices|metadata|address pairs?|injected files?).*exceed|` +
			`exceed.*(disk devices|metadata|address pairs?|injected files?)`,
	)
	// capacityWords match the scheduler ("No valid host was found"), the conductor ("Exhausted all hosts
	// available for retrying build failures"), placement and the claims of a host ("Insufficient compute
	// resources: …", "Claim pci failed").
	capacityWords = words(
		`no valid host|not enough hosts|exhausted all hosts|no allocation candidates`,
		`insufficient (compute )?(resources|capacity)|not enough (free )?(capacity|resources)|out of (stock|capacity)`,
		`claim (pci )?failed|affinity\b.{0,40}\bpolicy was violated`,
	)
	// typeWords also match the API's "machine type is not valid", and Nova's "Flavor … could not be found".
	typeWords = words(
		`\b(machine[ -]?type|flavou?r)( with (id|name))?( \S+)? ((is|was|could|does|has been) )?`+
			`(not (be )?(valid|found|exist)|invalid|unknown|discontinued|no longer available)\b`,
		`\b(not found:|invalid|unknown|no such|no)\s*(machine[ -]?type|flavou?r)`,
	)
	// placeWords match a 404 about the project or region instead of the call's resource: a server may
	// be "not found in project …", a "project network" missing.
	placeWords = words(
		`^\s*((the|requested) )*(project|region)( with id)?( \S*\d\S*)? ((is|was|could|does) )?`+
			`(not |un)(be )?(found|exist|known)`,
		`\bnot found:\s*(project|region)\b|\b(unknown|no such) (project|region)\b`,
	)
)

// maxDecisive limits the part of a message that is searched, in bytes: regular expressions take a
// second for a megabyte.
const maxDecisive = 16 << 10

func words(patterns ...string) *regexp.Regexp {
	return regexp.MustCompile("(?is)" + strings.Join(patterns, "|"))
}

// cause returns the reason that the message about a server, which the API cannot create or run, means
// by its words; "" for any other message.
func cause(message string) Reason {
	message = message[:min(len(message), maxDecisive)]
	if found := envelope.FindStringSubmatch(message); found != nil {
		if message = found[3]; strings.TrimSpace(message) == "" {
			return ReasonNoCapacity
		}
	}
	switch {
	case limitOfServer.MatchString(message):
		return ReasonRequestRefused
	case quotaWords.MatchString(message) && !notQuotas.MatchString(message):
		return ReasonQuotaExceeded
	case capacityWords.MatchString(message):
		return ReasonNoCapacity
	default:
		return ""
	}
}

// rule is a row of the table from failures to reasons.
type rule struct {
	reason Reason
	// sentence precedes the error in the text; "" for the error alone.
	sentence string
	matches  func(*failure) bool
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

// means reports whether the message about a server that the API cannot create or run means the reason.
func (f *failure) means(reason Reason) bool {
	return f.during(callCreateServer, callRunServer) && cause(f.api.Message) == reason
}

// rules is the only table that maps a failed call to its reason and sentence: the first matching row
// counts, and the last one matches everything.
var rules = []rule{
	{ReasonRequestRefused, "the providerSpec exceeds a limit of one server, check the providerSpec",
		func(f *failure) bool { return f.means(ReasonRequestRefused) }},
	{ReasonQuotaExceeded, "Quota exceeded",
		func(f *failure) bool { return f.means(ReasonQuotaExceeded) }},
	{ReasonNoCapacity, "the machine type is out of stock, no host of the zone has room for it",
		func(f *failure) bool { return f.means(ReasonNoCapacity) }},
	{ReasonServerFailed, "",
		func(f *failure) bool { return f.during(callRunServer) }},
	{ReasonUnknownMachineType,
		"the region does not have the machine type, set an existing one in the providerSpec",
		func(f *failure) bool {
			return f.during(callCreateServer) && f.status(http.StatusBadRequest, http.StatusNotFound) &&
				typeWords.MatchString(f.api.Message)
		}},
	{ReasonCredentialsRefused, "Authentication failed, check the Secret's service-account key or workload identity",
		func(f *failure) bool { return spi.IsRefused(f.err) || f.status(http.StatusUnauthorized) }},
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
		"a resource in the providerSpec or Secret was not found (image, network, key pair, project, ...)",
		func(f *failure) bool {
			return f.during(callCreateServer) && f.status(http.StatusNotFound, http.StatusGone)
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

// classified returns an error with its reason and text: the *Error in its chain, or that of the first
// matching row of the table. err must not be nil.
func classified(err error) *Error {
	var decided *Error
	if errors.As(err, &decided) {
		return decided
	}
	row, text := rules[ruleOf(err)], err.Error()
	if row.sentence != "" {
		text = row.sentence + ": " + text
	}
	return &Error{Reason: row.reason, Text: text, err: err}
}

// Classify returns the code and the text that the manager gets for an error of the driver. The text
// is one line of at most 512 bytes that begins with the reason, as in "NoCapacity: the machine type
// is out of stock, …". err must not be nil.
func Classify(err error) (codes.Code, string) {
	found := classified(err)
	return found.code(), found.Error()
}

func (e *Error) code() codes.Code {
	if e.isRetried {
		return codes.Unavailable
	}
	return e.Reason.Code()
}

// reasonOf returns the reason of an error; "" for nil.
func reasonOf(err error) Reason {
	if err == nil {
		return ""
	}
	return classified(err).Reason
}

// ruleOf returns the index of the first rule that matches an error.
func ruleOf(err error) int {
	seen := &failure{err: err}
	errors.As(err, &seen.api)
	return slices.IndexFunc(rules, func(row rule) bool { return row.matches(seen) })
}

// isExhausted reports whether an error is about quota, capacity or a machine type that does not exist.
func isExhausted(err error) bool { return reasonOf(err).Code() == codes.ResourceExhausted }

// maxText limits an error's text in a Machine's status, in bytes.
const maxText = 512

// sanitize returns a text that is safe for a Machine's status and for logs: one line of limited
// length. Its brackets are others, because the manager's parser reads the code between them.
func sanitize(text string) string {
	text = strings.NewReplacer("[", "(", "]", ")").Replace(printable(text))
	if len(text) <= maxText {
		return text
	}
	const ellipsis = "..."
	return strings.ToValidUTF8(text[:maxText-len(ellipsis)], "") + ellipsis
}
