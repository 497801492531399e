// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// TestClassify walks the table of rules.
func TestClassify(t *testing.T) {
	api := func(call apiCall, status int, message string) error {
		return &APIError{Call: call, StatusCode: status, Message: message, shown: redacted(message, "")}
	}
	lost := &APIError{Call: callCreateServer, Err: &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}}
	sent := func(err error) error {
		return &APIError{Call: callGetServer, Err: &url.Error{Op: "Get", URL: "https://iaas", Err: err}}
	}
	notSent := func(status int) error {
		err := &spi.NotSentError{StatusCode: status, Err: errors.New("not sent")}
		return &APIError{Call: callCreateServer, StatusCode: status, Err: err}
	}
	for _, row := range []struct {
		reason Reason
		err    error
		code   codes.Code
		says   string
	}{
		{ReasonQuotaExceeded, api(callCreateServer, 403, "Quota exceeded for cores: Requested 4"), codes.ResourceExhausted, "Quota exceeded"},
		{ReasonQuotaExceeded, api(callCreateServer, 413, "the volume quota is exceeded"), codes.ResourceExhausted, "Quota exceeded"},
		{ReasonQuotaExceeded, api(callCreateServer, 400, "this exceeds the quota"), codes.ResourceExhausted, "Quota exceeded"},
		{ReasonNoCapacity, api(callCreateServer, 500, "No valid host was found"), codes.ResourceExhausted, "There are not enough hosts available"},
		{ReasonAPIFailed, api(callListServers, 400, "invalid label selector"), codes.Unavailable, "label selector"},
		{ReasonTooManyRequests, api(callListServers, 429, "API rate quota exceeded"), codes.Unavailable, "Too many requests"},
		{ReasonTooManyRequests, api(callCreateServer, 429, "quota of requests exceeded"), codes.Unavailable, "Too many requests"},
		{ReasonTooManyRequests, api(callCreateServer, 429, "RequestLimitExceeded"), codes.Unavailable, "Too many requests"},
		{ReasonTooManyRequests, api(callCreateServer, 429, "ApiRateLimitExceeded"), codes.Unavailable, "Too many requests"},
		{ReasonTooManyRequests, api(callCreateServer, 429, "ThrottlingLimitExceeded"), codes.Unavailable, "Too many requests"},
		{ReasonQuotaExceeded, api(callCreateServer, 429, "Quota exceeded for nics"), codes.ResourceExhausted, "Quota exceeded"},
		{ReasonCredentialsRefused, &spi.CredentialsError{Reason: "the key is missing"}, codes.Unauthenticated, "Authentication failed"},
		{ReasonCredentialsRefused, sent(&spi.TokenError{Refused: true, Err: errors.New("status 401")}), codes.Unauthenticated, "Authentication failed"},
		{ReasonCredentialsRefused, api(callGetServer, 401, "Unauthorized"), codes.Unauthenticated, "Authentication failed"},
		{ReasonTokenEndpointDown, sent(&spi.TokenError{Err: errors.New("status 404")}), codes.Unavailable, "status 404"},
		// What a proxy answers to CONNECT is all that net/http says of it.
		{ReasonTokenEndpointDown, sent(&spi.TokenError{Err: &url.Error{Op: "Post", URL: "https://t", Err: errors.New("Authentication failed")}}),
			codes.Unavailable, "not authenticated"},
		{ReasonAPIFailed, sent(errors.New("Unauthorized")), codes.Unavailable, "reading a server: not authenticated"},
		{ReasonAPIFailed, sent(&net.OpError{Op: "read", Err: errors.New("Conflict")}), codes.Unavailable, "reading a server: read: clash"},
		{ReasonTooManyRequests, notSent(429), codes.Unavailable, "Too many requests"},
		{ReasonAPIFailed, notSent(503), codes.Unavailable, "creating a server: not sent"},
		{ReasonTimedOut, sent(&spi.NotSentError{Err: context.DeadlineExceeded}), codes.DeadlineExceeded, ""},
		{ReasonInterrupted, sent(context.Canceled), codes.Aborted, ""},
		{ReasonTimedOut, sent(context.DeadlineExceeded), codes.DeadlineExceeded, ""},
		{ReasonNoPermission, api(callGetServer, 403, "Forbidden"), codes.PermissionDenied, "not authorized"},
		{ReasonRequestRefused, api(callCreateServer, 400, "boot device size is not valid or missing"), codes.InvalidArgument, "boot device size"},
		{ReasonRequestRefused, api(callCreateServer, 400, `Error at "/machineType": property "machineType" is missing`),
			codes.InvalidArgument, "machineType"},
		{ReasonUnknownMachineType, api(callCreateServer, 400, "machine type is not valid"),
			codes.ResourceExhausted, "does not have the providerSpec's machineType"},
		{ReasonUnknownMachineType, api(callCreateServer, 404, "Machine type c9i.9 was not found"), codes.ResourceExhausted, "c9i.9"},
		{ReasonRequestRefused, api(callCreateServer, 413, "too large"), codes.InvalidArgument, "providerSpec"},
		{ReasonRequestRefused, api(callCreateServer, 422, "unprocessable"), codes.InvalidArgument, "providerSpec"},
		{ReasonRequestRefused, api(callUpdateNIC, 400, "bad address"), codes.InvalidArgument, "bad address"},
		{ReasonResourceMissing, api(callCreateServer, 404, "image not found"), codes.InvalidArgument, "image not found"},
		{ReasonNoServer, api(callGetServer, 404, "server not found"), codes.NotFound, "server not found"},
		{ReasonResourceMissing, api(callCreateServer, 410, "image gone"), codes.InvalidArgument, "image gone"},
		{ReasonNoServer, api(callGetServer, 410, "server gone"), codes.NotFound, "server gone"},
		{ReasonAPIFailed, api(callGetServer, 410, "project not found"), codes.Unavailable, "project not found"},
		{ReasonAPIFailed, api(callGetServer, 404, ""), codes.Unavailable, ""},
		{ReasonAPIFailed, api(callGetServer, 404, "project not found"), codes.Unavailable, "project not found"},
		{ReasonAPIFailed, api(callListNICs, 404, "server not found"), codes.Unavailable, ""},
		{ReasonAPIFailed, api(callUpdateNIC, 404, "NIC not found"), codes.Unavailable, ""},
		{ReasonResourceInUse, api(callCreateServer, 409, "Conflict"), codes.FailedPrecondition, "in use"},
		{ReasonServerBusy, api(callDeleteServer, 409, "Conflict"), codes.Aborted, "busy"},
		{ReasonServerBusy, api(callUpdateNIC, 409, "Conflict"), codes.Aborted, "busy"},
		{ReasonTooManyRequests, api(callListServers, 429, "slow down"), codes.Unavailable, "Too many requests"},
		{ReasonAPIFailed, api(callListServers, 500, "internal server error"), codes.Unavailable, ""},
		{ReasonAPIFailed, api(callGetServer, 502, ""), codes.Unavailable, "502"},
		{ReasonAPIFailed, lost, codes.Unavailable, "connection reset"},
		{ReasonAPIFailed, api(callGetServer, 307, ""), codes.Unavailable, "307"},
		{ReasonDriverBug, errors.New("a bug"), codes.Internal, "a bug"},
	} {
		t.Run(fmt.Sprintf("%s/%v", row.reason, row.err), func(t *testing.T) {
			code, text := Classify(row.err)
			if code != row.code || ReasonIn(text) != row.reason || !strings.Contains(text, row.says) {
				t.Errorf("got %s %q, want %s, %s and %q", code, text, row.code, row.reason, row.says)
			}
			checkText(t, code, text)
			if row.reason != ReasonUnknownMachineType { // Gardener's words for this code are about quota and hosts
				checkClass(t, code, text)
			} else if text := strings.ToLower(text); strings.Contains(text, "quota") || strings.Contains(text, "hosts") {
				t.Errorf("%q speaks of quota or hosts", text)
			}
		})
	}
}

// A proxy's words about a connection are no class of Gardener's.
func TestMisleadingWordsOfAConnectionAreReplaced(t *testing.T) {
	for _, word := range []string{
		"Conflict", "NotFound", "Unauthorized", "LimitExceeded", "Throttling", "OutOfRange", "Internal Server Error",
		"Authentication failed", "not authorized", "invalid_client", "invalid_grant", "invalid character '<'", "Too Many Requests",
	} {
		for _, err := range []error{errors.New(word), &net.OpError{Op: "dial", Err: errors.New(word)}} {
			_, text := Classify(&APIError{Call: callGetServer, Err: &url.Error{Op: "Get", URL: "https://iaas", Err: err}})
			first, _, _ := strings.Cut(strings.ToLower(word), " '")
			if strings.Contains(strings.ToLower(text), first) {
				t.Errorf("%q repeats %q", text, word)
			}
		}
	}
}

// checkText checks what the manager and Gardener read out of a text.
func checkText(t *testing.T, code codes.Code, text string) {
	t.Helper()
	decoded, ok := status.FromError(fmt.Errorf("wrapped: %w", status.Error(code, text)))
	if !ok || decoded.Code() != code || decoded.Message() != text {
		t.Errorf("the manager decodes %v from %q", decoded, text)
	}
	if len(text) > maxText || strings.ContainsAny(text, "[]\n\r\t") || !utf8.ValidString(text) {
		t.Errorf("%q is not fit for a status", text)
	}
}

// gardeners are how Gardener's extension for STACKIT tells classes of errors from
// texts, and the code each belongs to.
var gardeners = map[string]struct {
	pattern *regexp.Regexp
	code    codes.Code
}{
	"quota":       {regexp.MustCompile(`Quota.*exceeded`), codes.ResourceExhausted},
	"capacity":    {regexp.MustCompile(`There are not enough hosts available`), codes.ResourceExhausted},
	"rate limit":  {regexp.MustCompile(`Too many requests`), codes.Unavailable},
	"credentials": {regexp.MustCompile(`(?i)Authentication failed`), codes.Unauthenticated},
	"permissions": {regexp.MustCompile(`(?i)not authorized`), codes.PermissionDenied},
	"other": {regexp.MustCompile(`(?i)conflict|notfound|unauthorized|LimitExceeded|Throttling|OutOfRange|` +
		`internal server error`), codes.OK},
}

// checkClass checks that Gardener takes a text for nothing that its code is not,
// and for what its code says where it has a class for that alone.
func checkClass(t *testing.T, code codes.Code, text string) {
	t.Helper()
	classes := 0
	for name, class := range gardeners {
		if !class.pattern.MatchString(text) {
			continue
		}
		classes++
		if class.code != code {
			t.Errorf("Gardener takes %q for %s, its code is %s", text, name, code)
		}
	}
	ownClass := []codes.Code{codes.ResourceExhausted, codes.Unauthenticated, codes.PermissionDenied}
	if slices.Contains(ownClass, code) && classes == 0 {
		t.Errorf("Gardener has no class for %q", text)
	}
}

// A reason is nothing that Gardener or the manager searches texts for.
func TestReasons(t *testing.T) {
	source, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`\tReason\w+ +Reason = "`).FindAll(source, -1)
	if len(declared) != len(Reasons()) {
		t.Errorf("%d reasons are declared, and %d have a code", len(declared), len(Reasons()))
	}
	for _, reason := range Reasons() {
		for name, class := range gardeners {
			if class.pattern.MatchString(string(reason)) && class.code != reason.Code() {
				t.Errorf("Gardener takes the reason %s for %s, its code is %s", reason, name, reason.Code())
			}
		}
	}
}

func TestReasonIn(t *testing.T) {
	const text = "NoCapacity: There are not enough hosts available: creating a server: status 500"
	told := status.Error(codes.ResourceExhausted, text).Error()
	for name, row := range map[string]struct {
		description string
		want        Reason
	}{
		"the driver's text":       {text, ReasonNoCapacity},
		"an error of the driver":  {told, ReasonNoCapacity},
		"a failed creation":       {"Cloud provider message - " + told, ReasonNoCapacity},
		"a failed initialization": {"Provider error: " + told + ". Initialize Instance", ReasonNoCapacity},
		"a failed deletion": {
			"VM deletion failed due to - " + told + ". Aborting operation. Initiate VM deletion", ReasonNoCapacity},
		"a text of a version that knows no reason": {strings.ReplaceAll("Cloud provider message - "+told, "NoCapacity: ", ""), ""},
		"a reason that another version has":        {"Cloud provider message - " + strings.ReplaceAll(told, "NoCapacity", "OutOfHosts"), ""},
		"the reason is a word of the API":          {"creating a server: NoCapacity: status 500", ""},
		"nothing but the reason's word":            {"NoCapacity", ""},
		"the manager's own":                        {"Initiate node drain", ""},
		"nothing":                                  {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ReasonIn(row.description); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// Texts of the services behind the API, at the POST, whatever its status, and of a server in ERROR.
func TestWhatSaysThatSomethingIsExhausted(t *testing.T) {
	const none = codes.Internal // nothing is said of it
	for want, messages := range map[codes.Code][]string{
		codes.ResourceExhausted: {
			"No valid host was found. There are not enough hosts available.",
			"Exhausted all hosts available for retrying build failures for instance 7.",
			"Insufficient compute resources: Requested instance NUMA topology cannot fit.",
			"No more IP addresses available on network 20000000-0000-4000-8000-000000000001.",
			"Maximum number of ports exceeded",
			"VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded",
			"SnapshotLimitExceeded: Maximum number of snapshots allowed (10) exceeded",
			"Quota exceeded for cores: Requested 4, but already used 20 of 20 cores",
		},
		codes.InvalidArgument: {
			"The maximum allowed number of disk devices (26) to attach to a single instance has been exceeded.",
			"Exceeded maximum amount of allowed address pairs",
			"MetadataLimitExceeded: Maximum number of metadata items exceeds 128",
		},
		none: {"Conflict [a]\nb", "AddressOutOfRange", "Throttling", ""},
	} {
		for _, message := range messages {
			t.Run(message, func(t *testing.T) { checkExhausted(t, message, want) })
		}
	}
}

func checkExhausted(t *testing.T, message string, want codes.Code) {
	t.Helper()
	errs := []error{faultyError(&Server{ID: "s", ErrorMessage: message}, "")}
	for _, status := range []int{400, 403, 409, 413, 500} { // of 500 nobody knows what such a POST made
		if want == codes.ResourceExhausted || want == codes.InvalidArgument && status < 500 {
			errs = append(errs, &APIError{Call: callCreateServer, StatusCode: status, Message: message,
				shown: redacted(message, "")})
		}
	}
	for _, err := range errs {
		code, text := Classify(err)
		if code != want {
			t.Errorf("%v is %s, want %s", err, code, want)
		}
		checkText(t, code, text)
		checkClass(t, code, text)
	}
}

func FuzzSanitize(f *testing.F) {
	f.Add("server [x] is in conflict\n")
	f.Add("groups [a [b] c]] and [")
	f.Add("one\n two\r\n\tthree")
	f.Add(strings.Repeat("]", 600))
	f.Add(strings.Repeat("ü", maxText))
	f.Add("a\xff\xfe" + strings.Repeat("b", maxText))
	f.Fuzz(func(t *testing.T, text string) { checkText(t, codes.Internal, sanitize(text)) })
}

func TestOutcomeUnknown(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	read := &net.OpError{Op: "read", Err: errors.New("reset")}
	for name, row := range map[string]struct {
		err  *APIError
		want bool
	}{
		"refused by the API":  {&APIError{StatusCode: 400}, false},
		"too many requests":   {&APIError{StatusCode: 429}, false},
		"request timeout":     {&APIError{StatusCode: 408}, true},
		"server error":        {&APIError{StatusCode: 500}, true},
		"gateway timeout":     {&APIError{StatusCode: 504}, true},
		"unreadable success":  {&APIError{Err: errors.New("the answer cannot be read")}, true},
		"never connected":     {&APIError{Err: dial}, false},
		"connection lost":     {&APIError{Err: read}, true},
		"deadline":            {&APIError{Err: context.DeadlineExceeded}, true},
		"not sent":            {&APIError{Err: &spi.NotSentError{Err: read}}, false},
		"held back by others": {&APIError{StatusCode: 503, Err: &spi.NotSentError{StatusCode: 503, Err: read}}, false},
		"not sent in time":    {&APIError{Err: &spi.NotSentError{Err: context.DeadlineExceeded}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			row.err.Call = callCreateServer
			if got := outcomeUnknown(row.err); got != row.want {
				t.Errorf("got %t, want %t", got, row.want)
			}
		})
	}
}
