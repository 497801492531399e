// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Error is a failure whose code the driver itself decided.
type Error struct {
	// Code goes to the manager, and decides its next step.
	Code codes.Code
	// Text says what happened, to which server, and what to do.
	Text string
	// Label is the server's label by which it is not the machine's; "" if the failure is
	// about something else.
	Label string
	err   error
}

func (e *Error) Error() string { return e.Text }

func (e *Error) Unwrap() error { return e.err }

func newError(code codes.Code, text string) error {
	return &Error{Code: code, Text: text}
}

// mostErrors is more than a text has room for. To join 100,000 takes minutes.
const mostErrors = 32

// invalidError tells all errors; where they are too long for a text, the first one and the
// fields of all.
func invalidError(errs field.ErrorList) error {
	text := errs[:min(len(errs), mostErrors)].ToAggregate().Error()
	if len(errs) > mostErrors || len(text) > maxText {
		var fields []string
		for _, err := range errs {
			fields = append(fields, err.Field)
		}
		text = fmt.Sprintf("%d fields are wrong, the first: %v. All: %s", len(errs), errs[0], strings.Join(fields, ", "))
	}
	return newError(codes.InvalidArgument, text)
}

// notOurs refuses to touch a server that does not carry want under the label.
func notOurs(server *Server, label, want string) error {
	is := fmt.Sprintf("%q", server.Labels[label])
	if _, ok := server.Labels[label]; !ok {
		is = "missing"
	}
	must := fmt.Sprintf("%q", want)
	if want == "" {
		must = "absent, or set in providerSpec.labels"
	}
	return &Error{Code: codes.FailedPrecondition, Label: label, Text: fmt.Sprintf(
		"server %s (%s) "+TextNotOurs+": its label %s is %s, must be %s; restore the label if the server belongs to the machine",
		server.ID, server.Name, label, is, must)}
}

var (
	// errGone says that a server is proved gone, and nothing else.
	errGone = errors.New("the server is gone")
	// errUnusable says that a server is there, or was, that this call cannot use: it is in
	// ERROR or being deleted, or our POST's answer named it and it is somebody else's.
	errUnusable = errors.New("the server cannot be used")
	// errNoneKnown says that this process knows no server of the machine that is ready; it
	// has not looked.
	errNoneKnown = errors.New("no server that is ready is known")
	// errNone says that look-ups have proved that there is no server that this call can use.
	errNone = errors.New("there is no server that can be used")
)

// errUnlabelled says that a server which the machine's own POST made does not show the labels
// it was made with.
var errUnlabelled = errors.New("the server does not show its labels")

func unlabelledError(server *Server) error {
	return &Error{Code: codes.Unavailable, err: errUnlabelled, Text: fmt.Sprintf(
		"server %s "+TextUnlabelled+": it is left alone until it does", server.ID)}
}

// isNotOurs says that a server was refused because it is not the machine's.
func isNotOurs(err error) bool {
	var decided *Error
	return errors.As(err, &decided) && decided.Label != ""
}

// lateError is the end of a wait: state is the last one seen.
func lateError(err error, state string) error {
	if errors.Is(err, context.Canceled) {
		return &Error{Code: codes.Aborted, Text: "the call was cancelled: " + state, err: err}
	}
	return &Error{Code: codes.DeadlineExceeded, Text: TextLate + ", will go on with the next call: " + state, err: err}
}

// interruptedError ends a wait whose credentials were refused: the manager comes
// back in seconds, with the Secret as it is then.
func interruptedError(err error) error {
	return &Error{Code: codes.Unavailable, Text: TextInterrupted + ", the Secret's credentials are not accepted any more: " + err.Error(), err: err}
}

// faultyError is a server that ended in ERROR. Its reason is a message of the API.
func faultyError(server *Server, hide hiding) error {
	reason := hide.shown(server.reason())
	switch {
	case noHost.MatchString(server.ErrorMessage):
		return newError(codes.ResourceExhausted, fmt.Sprintf(TextNoHost+": server %s: %s", server.ID, reason))
	case quotaExceeded.MatchString(server.ErrorMessage):
		return newError(codes.ResourceExhausted, fmt.Sprintf(TextQuota+": server %s: %s", server.ID, reason))
	default:
		return newError(codes.Internal, fmt.Sprintf(TextFaulty+": %s", server.ID, reason))
	}
}

var (
	quotaExceeded = regexp.MustCompile(`(?is)quota.*exceed|exceed.*quota`)
	quotaOfCalls  = regexp.MustCompile(`(?i)\brate\b|requests`)
	noHost        = regexp.MustCompile(`(?i)no valid host|not enough hosts`)
	// noMachineType matches the API's "machine type is not valid", with or without a name.
	noMachineType = regexp.MustCompile(`(?i)\bmachine type( \S+)? (is|was) (not (valid|found)|invalid)`)
	// aboutProject recognises a 404 about the project instead of the server.
	aboutProject = regexp.MustCompile(`(?i)^\s*(the |requested )*project\b|\bproject (was |could )?not (be )?found`)
)

// rule is a row of the table from failures to the manager's codes.
type rule struct {
	name    string
	matches func(*failure) bool
	code    codes.Code
	text    func(*failure) string
}

// failure is an error as the rules see it.
type failure struct {
	err error
	// api is the failed API call; nil if there was none.
	api *APIError
}

func (f *failure) status(codes ...int) bool {
	return f.api != nil && slices.Contains(codes, f.api.StatusCode)
}

func (f *failure) during(call apiCall) bool {
	return f.api != nil && f.api.Call == call
}

func (f *failure) clientError() bool {
	return f.api != nil && f.api.StatusCode >= http.StatusBadRequest && f.api.StatusCode < http.StatusInternalServerError
}

// rateLimited says whether the quota that an answer speaks of is one of calls.
func (f *failure) rateLimited() bool {
	return f.status(http.StatusTooManyRequests) && (!f.during(callCreateServer) || quotaOfCalls.MatchString(f.api.Message))
}

func plain(f *failure) string { return f.err.Error() }

func prefixed(prefix string) func(*failure) string {
	return func(f *failure) string { return prefix + ": " + f.err.Error() }
}

// rules is the one table from a failure to the manager's code; the first that
// matches counts. Codes decide about retries (the manager's machine_util.go):
// Unavailable, Aborted and DeadlineExceeded come back after 5 s, ResourceExhausted
// after a period of its own, all others after minutes.
var rules = []rule{
	{"no capacity", func(f *failure) bool {
		return f.during(callCreateServer) && noHost.MatchString(f.api.Message)
	}, codes.ResourceExhausted, prefixed(TextNoHost)},
	{"quota exceeded", func(f *failure) bool {
		return f.clientError() && quotaExceeded.MatchString(f.api.Message) && !f.rateLimited()
	}, codes.ResourceExhausted, prefixed(TextQuota)},
	// Only this code makes the cluster autoscaler try another pool.
	{"no such machine type", func(f *failure) bool {
		return f.during(callCreateServer) && f.clientError() && noMachineType.MatchString(f.api.Message)
	}, codes.ResourceExhausted, prefixed(TextNoMachineType + ", set one that its region has")},
	{"credentials refused", func(f *failure) bool {
		return isRefused(f.err)
	}, codes.Unauthenticated, prefixed(TextCredentials + ", check the Secret's service-account key or workload identity")},
	{"token endpoint down", func(f *failure) bool {
		var token *spi.TokenError
		return errors.As(f.err, &token)
	}, codes.Unavailable, plain},
	{"cancelled", func(f *failure) bool { return errors.Is(f.err, context.Canceled) }, codes.Aborted, plain},
	{"our deadline", func(f *failure) bool { return errors.Is(f.err, context.DeadlineExceeded) }, codes.DeadlineExceeded, plain},
	{"forbidden", func(f *failure) bool { return f.status(http.StatusForbidden) },
		codes.PermissionDenied, prefixed(TextForbidden + ", check its permissions and that it belongs to the Secret's project")},
	{"bad request", func(f *failure) bool {
		return (f.during(callCreateServer) || f.during(callUpdateNIC)) &&
			f.status(http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity)
	}, codes.InvalidArgument, prefixed(TextRefused + ", check the providerSpec")},
	{"referenced resource missing", func(f *failure) bool {
		return f.during(callCreateServer) && f.status(http.StatusNotFound)
	}, codes.InvalidArgument, prefixed(TextMissing + " (project, image, network, key pair, ...)")},
	{"server missing", func(f *failure) bool { return isServerNotFound(f.err) }, codes.NotFound, plain},
	{"something else missing", func(f *failure) bool { return f.status(http.StatusNotFound) }, codes.Unavailable, plain},
	{"in use", func(f *failure) bool { return f.during(callCreateServer) && f.status(http.StatusConflict) },
		codes.FailedPrecondition, prefixed(TextInUse)},
	{"busy", func(f *failure) bool { return f.status(http.StatusConflict) },
		codes.Aborted, prefixed(TextBusy + ", will be tried again")},
	{"too many requests", func(f *failure) bool { return f.status(http.StatusTooManyRequests) },
		codes.Unavailable, prefixed(TextThrottled)},
	{"API out of order", func(f *failure) bool {
		return f.api != nil && (f.api.StatusCode == 0 || f.api.StatusCode >= http.StatusInternalServerError)
	}, codes.Unavailable, plain},
	// What matches no rule is a bug of the driver: Internal.
	{"anything else of the API", func(f *failure) bool { return f.api != nil }, codes.Unavailable, plain},
}

// classify returns the code and text for an error of the driver.
func classify(err error) (codes.Code, string) {
	var decided *Error
	if errors.As(err, &decided) {
		return decided.Code, sanitize(decided.Text)
	}
	seen := &failure{err: err}
	errors.As(err, &seen.api)
	for _, rule := range rules {
		if rule.matches(seen) {
			return rule.code, sanitize(rule.text(seen))
		}
	}
	return codes.Internal, sanitize(err.Error())
}

// isServerNotFound says whether the API itself, and not a gateway, answered that
// a server does not exist. An answer about the project does not tell.
func isServerNotFound(err error) bool {
	var api *APIError
	return errors.As(err, &api) && (api.Call == callGetServer || api.Call == callDeleteServer) && api.saysNotFound()
}

// saysNotFound says whether the API itself answered that what the call names does not
// exist, and not that the project does not.
func (e *APIError) saysNotFound() bool {
	return e.StatusCode == http.StatusNotFound && e.Message != "" && !aboutProject.MatchString(e.Message)
}

// isRefused says whether the credentials were refused, by the token endpoint or
// (with a new token) by the API.
func isRefused(err error) bool {
	var api *APIError
	return spi.IsRefused(err) || (errors.As(err, &api) && api.StatusCode == http.StatusUnauthorized)
}

// outcomeUnknown says whether a failed POST may have made a server: unless the
// API refused it, or it was never sent.
func outcomeUnknown(err error) bool {
	var api *APIError
	if !errors.As(err, &api) {
		return true
	}
	var notSent *spi.NotSentError
	var dial *net.OpError
	switch {
	case errors.As(err, &notSent), errors.As(err, &dial) && dial.Op == "dial":
		return false
	case api.StatusCode == http.StatusRequestTimeout:
		return true
	default:
		return api.StatusCode < http.StatusBadRequest || api.StatusCode >= http.StatusInternalServerError
	}
}

// maxText is the greatest length of an error's text in a Machine's status, in bytes.
const maxText = 512

// sanitize makes a text fit for a Machine's status: one line, no brackets (the
// manager's parser reads the code between brackets), not long.
func sanitize(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	text = strings.NewReplacer("[", "(", "]", ")").Replace(text)
	if len(text) <= maxText {
		return text
	}
	const ellipsis = "..."
	return strings.ToValidUTF8(text[:maxText-len(ellipsis)], "") + ellipsis
}
