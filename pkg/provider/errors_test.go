// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// TestClassify walks the table of rules: each decides about a row here.
func TestClassify(t *testing.T) {
	api := func(call apiCall, status int, message string) error {
		return &APIError{Call: call, StatusCode: status, Message: message, shown: redacted(message), isOfIaaS: true}
	}
	page := func(call apiCall, status int) error { return &APIError{Call: call, StatusCode: status} }
	otherForm := func(call apiCall, status int, message string) error {
		return &APIError{Call: call, StatusCode: status, Message: message, shown: message}
	}
	lost := &APIError{Call: callCreateServer, Err: &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}}
	sent := func(err error) error {
		return &APIError{Call: callGetServer, Err: &url.Error{Op: "Get", URL: "https://iaas", Err: err}}
	}
	notSent := func(status int) error {
		err := &spi.NotSentError{StatusCode: status, Err: errors.New("not sent")}
		return &APIError{Call: callCreateServer, StatusCode: status, Err: err}
	}
	proxyRefuses := &spi.NotSentError{Attempted: true,
		Err: errors.New("the proxy p:3128 refused the connection with status 403")}
	decided := make([]bool, len(rules))
	for _, row := range []struct {
		reason Reason
		err    error
		code   codes.Code
		says   string
	}{
		{ReasonRequestRefused, api(callCreateServer, 403, "exceeds the limit of 10 volumes per server"),
			codes.InvalidArgument, "exceeds a limit of one server"},
		{ReasonServerFailed, &APIError{Call: callRunServer, Message: "Build of instance aborted",
			Err: errors.New("server s ended in state ERROR")},
			codes.Internal, "ended in state ERROR"},
		{ReasonQuotaExceeded, api(callCreateServer, 403, "Quota exceeded for cores: Requested 4"), codes.ResourceExhausted,
			"Quota exceeded"},
		{ReasonQuotaExceeded, api(callCreateServer, 413, "the volume quota is exceeded"), codes.ResourceExhausted,
			"Quota exceeded"},
		{ReasonQuotaExceeded, api(callCreateServer, 400, "this exceeds the quota"), codes.ResourceExhausted,
			"Quota exceeded"},
		{ReasonNoCapacity, api(callCreateServer, 500, "No valid host was found"), codes.ResourceExhausted, "out of stock"},
		{ReasonAPIFailed, api(callListServers, 400, "invalid label selector"), codes.Unavailable, "label selector"},
		{ReasonTooManyRequests, api(callCreateServer, 429, "quota of requests exceeded"), codes.Unavailable,
			"Too many requests"},
		{ReasonQuotaExceeded, api(callCreateServer, 429, "Quota exceeded for nics"), codes.ResourceExhausted,
			"Quota exceeded"},
		{ReasonCredentialsRefused, &spi.CredentialsError{Reason: "the key is missing"}, codes.Unauthenticated,
			"Authentication failed"},
		{ReasonCredentialsRefused, sent(&spi.TokenError{Refused: true, Err: errors.New("status 401")}), codes.Unauthenticated,
			"Authentication failed"},
		{ReasonCredentialsRefused, api(callGetServer, 401, "Unauthorized"), codes.Unauthenticated, "Authentication failed"},
		{ReasonTokenEndpointDown, sent(&spi.TokenError{Err: errors.New("status 404")}), codes.Unavailable, "status 404"},
		{ReasonAPIFailed, sent(proxyRefuses), codes.Unavailable,
			"reading a server: the proxy p:3128 refused the connection with status 403"},
		{ReasonTokenEndpointDown, sent(&spi.TokenError{Err: proxyRefuses}), codes.Unavailable, "the proxy p:3128 refused"},
		{ReasonTooManyRequests, notSent(429), codes.Unavailable, "Too many requests"},
		{ReasonAPIFailed, notSent(503), codes.Unavailable, "creating a server: not sent"},
		{ReasonTimedOut, sent(&spi.NotSentError{Err: context.DeadlineExceeded}), codes.DeadlineExceeded, ""},
		{ReasonInterrupted, sent(context.Canceled), codes.Aborted, ""},
		{ReasonTimedOut, sent(context.DeadlineExceeded), codes.DeadlineExceeded, ""},
		{ReasonNoPermission, api(callGetServer, 403, "Forbidden"), codes.PermissionDenied, "not authorized"},
		{ReasonRequestRefused, api(callCreateServer, 400, "boot device size is not valid or missing"), codes.InvalidArgument,
			"boot device size"},
		{ReasonRequestRefused, api(callCreateServer, 400, `Error at "/machineType": property "machineType" is missing`),
			codes.InvalidArgument, "machineType"},
		{ReasonUnknownMachineType, api(callCreateServer, 400, "machine type is not valid"),
			codes.ResourceExhausted, "does not have the machine type"},
		{ReasonUnknownMachineType, api(callCreateServer, 404, "resource not found: machine type"),
			codes.ResourceExhausted, "not found: machine type"},
		{ReasonUnknownMachineType, api(callCreateServer, 404, "Flavor c9i.9 could not be found."),
			codes.ResourceExhausted, "c9i.9"},
		{ReasonUnknownMachineType, api(callCreateServer, 400, "Invalid flavorRef provided."),
			codes.ResourceExhausted, "flavorRef"},
		{ReasonUnknownMachineType, api(callCreateServer, 400, "Machine type c9i.9 has been discontinued"),
			codes.ResourceExhausted, "c9i.9"},
		{ReasonRequestRefused, api(callCreateServer, 400, "Flavor's disk is too small for requested image."),
			codes.InvalidArgument, "too small"},
		{ReasonNoPermission, api(callCreateServer, 403, "insufficient permission to read the quota"),
			codes.PermissionDenied, "not authorized"},
		{ReasonNoPermission, api(callCreateServer, 403, "quota service: insufficient scope"),
			codes.PermissionDenied, "not authorized"},
		{ReasonRequestRefused, api(callCreateServer, 413, "too large"), codes.InvalidArgument, "providerSpec"},
		{ReasonRequestRefused, api(callCreateServer, 422, "unprocessable"), codes.InvalidArgument, "providerSpec"},
		{ReasonRequestRefused, api(callUpdateNIC, 400, "bad address"), codes.InvalidArgument, "bad address"},
		{ReasonResourceMissing, api(callCreateServer, 404, "image not found"), codes.InvalidArgument, "image not found"},
		{ReasonNoServer, api(callGetServer, 404, "server not found"), codes.NotFound, "server not found"},
		{ReasonResourceMissing, api(callCreateServer, 410, "image gone"), codes.InvalidArgument, "image gone"},
		{ReasonNoServer, api(callGetServer, 410, "server gone"), codes.NotFound, "server gone"},
		{ReasonAPIFailed, api(callGetServer, 410, "project not found"), codes.Unavailable, "project not found"},
		{ReasonAPIFailed, api(callGetServer, 404, "resource not found: project"), codes.Unavailable, "not found: project"},
		{ReasonAPIFailed, api(callGetServer, 404, "region not found"), codes.Unavailable, "region not found"},
		{ReasonAPIFailed, api(callGetServer, 404, "Project with ID 'd61a8564-c8dd-4ffb-bc15-143e7d0c85ed' does not exist"),
			codes.Unavailable, "does not exist"},
		{ReasonResourceMissing, api(callCreateServer, 404, "resource not found: project"), codes.InvalidArgument,
			"not found: project"},
		{ReasonNoServer, api(callGetServer, 404, "server s was not found in project p"), codes.NotFound, "in project p"},
		{ReasonAPIFailed, otherForm(callGetServer, 404, "No message available"), codes.Unavailable, "No message available"},
		{ReasonResourceMissing, otherForm(callCreateServer, 404, "resource not found: keypair"), codes.InvalidArgument,
			"status 404: resource not found: keypair"},
		{ReasonResourceMissing, otherForm(callCreateServer, 410, "image gone"), codes.InvalidArgument, "image gone"},
		{ReasonUnknownMachineType, otherForm(callCreateServer, 404, "resource not found: machine type"),
			codes.ResourceExhausted, "not found: machine type"},
		{ReasonAPIFailed, page(callCreateServer, 404), codes.Unavailable, "status 404, not the API's answer"},
		{ReasonAPIFailed, page(callCreateServer, 404), codes.Unavailable,
			"status 404, not the API's answer"},
		{ReasonNoPermission, otherForm(callGetServer, 403, "Forbidden"), codes.PermissionDenied, "Forbidden"},
		{ReasonAPIFailed, page(callGetServer, 404), codes.Unavailable, "status 404, not the API's answer"},
		{ReasonAPIFailed, page(callGetServer, 403), codes.Unavailable, "status 403, not the API's answer"},
		{ReasonAPIFailed, page(callGetServer, 401), codes.Unavailable,
			"status 401, not the API's answer: if it lasts, check that the credentials and the API's endpoint belong to"},
		{ReasonAPIFailed, page(callCreateServer, 400), codes.Unavailable, "status 400, not the API's answer"},
		{ReasonAPIFailed, page(callCreateServer, 409), codes.Unavailable, "status 409, not the API's answer"},
		{ReasonAPIFailed, page(callCreateServer, 200), codes.Unavailable, "status 200, not the API's answer"},
		{ReasonTooManyRequests, page(callListServers, 429), codes.Unavailable, "Too many requests"},
		{ReasonAPIFailed, api(callGetServer, 404, "project not found"), codes.Unavailable, "project not found"},
		{ReasonAPIFailed, api(callListNICs, 404, "server not found"), codes.Unavailable, ""},
		{ReasonAPIFailed, api(callUpdateNIC, 404, "NIC not found"), codes.Unavailable, ""},
		{ReasonResourceInUse, &APIError{Call: callCreateServer, StatusCode: 409, Message: "Conflict", shown: "Conflict",
			isExclusive: true},
			codes.FailedPrecondition, "status 409: Conflict"},
		{ReasonServerBusy, api(callCreateServer, 409, "Conflict"), codes.Aborted, "busy"},
		{ReasonAPIFailed, api(callCreateServer, 402, "Payment Required"), codes.Unavailable, "402"},
		{ReasonAPIFailed, notSent(409), codes.Unavailable, "creating a server: not sent"},
		{ReasonServerBusy, api(callDeleteServer, 409, "Conflict"), codes.Aborted, "busy"},
		{ReasonServerBusy, api(callUpdateNIC, 409, "Conflict"), codes.Aborted, "busy"},
		{ReasonTooManyRequests, api(callListServers, 429, "slow down"), codes.Unavailable, "Too many requests"},
		{ReasonAPIFailed, api(callListServers, 500, "internal server error"), codes.Unavailable, "internal server error"},
		{ReasonAPIFailed, api(callGetServer, 502, ""), codes.Unavailable, "502"},
		{ReasonAPIFailed, lost, codes.Unavailable, "connection reset"},
		{ReasonAPIFailed, api(callGetServer, 307, ""), codes.Unavailable, "307"},
		{ReasonDriverBug, errors.New("a bug"), codes.Internal, "a bug"},
	} {
		decided[ruleOf(row.err)] = true
		t.Run(fmt.Sprintf("%s/%v", row.reason, row.err), func(t *testing.T) {
			code, text := Classify(row.err)
			if code != row.code || ReasonIn(text) != row.reason || !strings.Contains(text, row.says) {
				t.Errorf("got %s %q, want %s, %s and %q", code, text, row.code, row.reason, row.says)
			}
			checkText(t, code, text)
		})
	}
	for i, isDecisive := range decided {
		if !isDecisive {
			t.Errorf("rule %d (%s, %q) decides about no row of this test", i+1, rules[i].reason, rules[i].sentence)
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

// classes are how Gardener's extension for STACKIT (87ca8d5, pkg/apis/stackit/helper/error_codes.go) tells
// classes of errors from texts, and the reasons that mean the same.
var classes = map[string]struct {
	alternatives []string
	meant        []Reason
}{
	"unauthenticated": {[]string{"Authentication failed", "invalid character", "invalid_client", "cannot fetch token",
		"InvalidSecretAccessKey"},
		[]Reason{ReasonCredentialsRefused}},
	"unauthorized": {
		[]string{"Unauthorized", "SignatureDoesNotMatch", "invalid_grant", "Authorization Profile was not found",
			"no active subscriptions", "not authorized", "AccessDenied", "PolicyNotAuthorized"},
		[]Reason{ReasonCredentialsRefused, ReasonNoPermission}},
	"quota": {
		[]string{
			"(?:^|[^t]|(?:[^s]|^)t|(?:[^e]|^)st|(?:[^u]|^)est|(?:[^q]|^)uest|(?:[^e]|^)quest|(?:[^r]|^)equest)LimitExceeded",
			"Quotas", "Quota.*exceeded", "exceeded quota", "Quota has been met", "QUOTA_EXCEEDED",
			"Maximum number of ports exceeded", "VolumeSizeExceedsAvailableQuota"}, []Reason{ReasonQuotaExceeded}},
	"rate limit": {[]string{"RequestLimitExceeded", "Throttling", "Too many requests"}, []Reason{ReasonTooManyRequests}},
	"dependencies": {[]string{"PendingVerification", "Access Not Configured", "accessNotConfigured", "DependencyViolation",
		"OptInRequired", "Conflict", "inactive billing state", "timeout while waiting for state to become",
		"InvalidCidrBlock", "already busy for", "A resource with the ID", "There are not enough hosts available",
		"No Router found", "Service not enabled"}, []Reason{ReasonResourceInUse}},
	"retried dependencies": {[]string{"RetryableError", "internal server error"}, []Reason{ReasonAPIFailed}},
	"depleted": {[]string{"not available in the current hardware cluster", "out of stock"},
		[]Reason{ReasonNoCapacity}},
	"configuration": {[]string{"missing expected router", "Policy doesn't allow .* to be performed", "overlaps with cidr",
		"not supported in your requested Availability Zone", "notFound", "Invalid value", "violates constraint",
		"no attached internet gateway found", "Your query returned no results", "invalid VPC attributes",
		"unrecognized feature gate", "runtime-config invalid key", "strict decoder error",
		"not allowed to configure an unsupported", "error during apply of object .* is invalid:", "duplicate zones",
		"overlapping zones"},
		[]Reason{ReasonInvalidInput, ReasonRequestRefused, ReasonResourceMissing}},
	"retried configuration": {
		[]string{"is misconfigured and requires zero voluntary evictions", "SDK.CanNotResolveEndpoint",
			"The requested configuration is currently not supported"}, nil},
	"the manager's orphans": {[]string{"OutOfRange", "NotFound"}, nil}, // machine_safety.go
}

var classPatterns = func() map[string]*regexp.Regexp {
	patterns := map[string]*regexp.Regexp{}
	for name, class := range classes {
		patterns[name] = regexp.MustCompile("(?i)(" + strings.Join(class.alternatives, "|") + ")")
	}
	return patterns
}()

// own are the classes that a reason must be in, if Gardener has one for it.
var own = map[Reason]string{
	ReasonCredentialsRefused: "unauthenticated", ReasonNoPermission: "unauthorized", ReasonQuotaExceeded: "quota",
	ReasonTooManyRequests: "rate limit", ReasonNoCapacity: "depleted",
}

// checkClass checks that Gardener takes a text for what its reason means, and for nothing else.
func checkClass(t *testing.T, text string) {
	t.Helper()
	reason := ReasonIn(text)
	for name, pattern := range classPatterns {
		isIn := pattern.MatchString(text)
		if isIn && !slices.Contains(classes[name].meant, reason) {
			t.Errorf("Gardener takes %q for %s: %q", text, name, pattern.FindString(text))
		}
		if own[reason] == name && !isIn {
			t.Errorf("Gardener does not take %q for %s", text, name)
		}
	}
}

// Gardener takes each sentence of the table for what its reason means, and the API's words pass through.
func TestSentencesAreSortedByTheirReasons(t *testing.T) {
	for _, rule := range rules {
		if rule.sentence != "" {
			checkClass(t, string(rule.reason)+": "+rule.sentence)
		}
	}
	const words = "Conflict: port 7 conflicts with quota reservation; invalid character, NotFound"
	for _, call := range []apiCall{callGetServer, callUpdateNIC, callDeleteServer} {
		_, text := Classify(&APIError{Call: call, StatusCode: 500, Message: words, shown: redacted(words)})
		if !strings.Contains(text, words) {
			t.Errorf("%q lacks the API's words", text)
		}
	}
}

// What the driver says by itself is in no class, but the rows of the table (TestClassify).
func TestTheDriversOwnWordsAreSortedAsNothing(t *testing.T) {
	for _, folder := range []string{".", "apis", "apis/validation", "providerid", "../spi"} {
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(node ast.Node) bool {
				switch node := node.(type) {
				case *ast.ImportSpec:
					return false
				case *ast.ValueSpec: // the tables
					return !slices.ContainsFunc(node.Names,
						func(name *ast.Ident) bool { return name.Name == "rules" })
				case *ast.CallExpr:
					name, _ := node.Fun.(*ast.Ident)
					selected, _ := node.Fun.(*ast.SelectorExpr)
					return (name == nil || name.Name != "words") && (selected == nil || selected.Sel.Name != "MustCompile")
				case *ast.BasicLit:
					text, err := strconv.Unquote(node.Value)
					if node.Kind != token.STRING || err != nil || !strings.Contains(text, " ") {
						return true
					}
					checkClass(t, text)
				}
				return true
			})
		}
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
		for name, pattern := range classPatterns {
			if pattern.MatchString(string(reason)) && own[reason] != name {
				t.Errorf("Gardener takes the reason %s for %s", reason, name)
			}
		}
	}
}

func TestReasonIn(t *testing.T) {
	const text = "NoCapacity: the machine type is out of stock: creating a server: status 500"
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
		"a text of a version that knows no reason": {
			strings.ReplaceAll("Cloud provider message - "+told, "NoCapacity: ", ""), ""},
		"a reason that another version has": {
			"Cloud provider message - " + strings.ReplaceAll(told, "NoCapacity", "OutOfHosts"), ""},
		"the reason is a word of the API": {"creating a server: NoCapacity: status 500", ""},
		"nothing but the reason's word":   {"NoCapacity", ""},
		"the manager's own":               {"Initiate node drain", ""},
		"nothing":                         {"", ""},
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
	const envelope = "Exceeded maximum number of retries. Exceeded max scheduling attempts 3 for instance " +
		"20000000-0000-4000-8000-000000000001."
	for want, messages := range map[Reason][]string{
		ReasonNoCapacity: {
			"No valid host was found. There are not enough hosts available.", "NoValidHost: No valid host was found",
			"Exhausted all hosts available for retrying build failures for instance 7.",
			envelope, envelope + " Last exception: ", envelope + " Last exception: Insufficient compute resources: x",
			"Exceeded max scheduling attempts 3 for this instance",
			"Insufficient compute resources: Free memory 100.00 MB < requested 4096 MB.", "Claim pci failed",
			"Anti-affinity instance group policy was violated", "insufficient capacity", "not enough capacity in eu01-1",
			"out of stock", "No allocation candidates",
		},
		ReasonQuotaExceeded: {
			"No more IP addresses available on network 20000000-0000-4000-8000-000000000001.", "IpAddressGenerationFailure",
			"Maximum number of ports exceeded", "VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded",
			"VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota",
			"Quota exceeded for cores: Requested 4, but already used 20 of 20 cores", "QUOTA_EXCEEDED", "Quota has been met",
			"this exceeds the quota", "The quota for RAM is insufficient",
			envelope + " Last exception: Maximum number of ports exceeded",
			envelope + " Last exception: No more IP addresses available on network 7.",
			envelope + " Last exception: VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded",
		},
		ReasonRequestRefused: {
			"The maximum allowed number of disk devices (26) to attach to a single instance has been exceeded.",
			"Exceeded maximum amount of allowed address pairs", "exceeds the limit of 10 volumes per server",
			"MetadataLimitExceeded: Maximum number of metadata items exceeds 128",
		},
		ReasonServerFailed: { // nothing is said of it
			envelope + " Last exception: Network requires port_security_enabled and subnet associated",
			envelope + " Last exception: Image 7 could not be found", "",
			"Build of instance aborted: Failed to allocate the network(s), not rescheduling.",
			"API rate limit exceeded for project 7", "Requests exceed the quota", "retry limit reached for server 7",
			"could not read quotas: insufficient scope", "Insufficient permissions to access resources in project 7",
			"quota service unavailable: retries exceeded", "quota tag not found",
			"upstream connect error or disconnect/reset before headers. reset reason: overflow",
		},
	} {
		for _, message := range messages {
			t.Run(message, func(t *testing.T) {
				errs := []error{faultyError(&Server{ID: "s", ErrorMessage: message}, "")}
				for _, status := range []int{400, 403, 409, 413, 429, 500} {
					if want != ReasonServerFailed {
						errs = append(errs, &APIError{Call: callCreateServer, StatusCode: status, Message: message,
							shown: redacted(message)})
					}
				}
				for _, err := range errs {
					code, text := Classify(err)
					if reasonOf(err) != want {
						t.Errorf("%v is %s, want %s", err, reasonOf(err), want)
					}
					checkText(t, code, text)
				}
			})
		}
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
	read := &net.OpError{Op: "read", Err: errors.New("reset")}
	for name, row := range map[string]struct {
		err  *APIError
		want bool
	}{
		"refused by the API":   {&APIError{StatusCode: 400, Message: "bad"}, false},
		"unknown to the table": {&APIError{StatusCode: 423, Message: "locked"}, false},
		"a page with 400":      {&APIError{StatusCode: 400}, true},
		"a page with 401":      {&APIError{StatusCode: 401}, true},
		"a page with 403":      {&APIError{StatusCode: 403}, true},
		"a page with 404":      {&APIError{StatusCode: 404}, true},
		"a page with 200":      {&APIError{StatusCode: 200}, true},
		"too many requests":    {&APIError{StatusCode: 429, Message: "slow down"}, false},
		"a page with 429":      {&APIError{StatusCode: 429}, false},
		"request timeout":      {&APIError{StatusCode: 408, Message: "late"}, true},
		"server error":         {&APIError{StatusCode: 500, Message: "bad"}, true},
		"gateway timeout":      {&APIError{StatusCode: 504}, true},
		"unreadable success":   {&APIError{Err: errors.New("the answer cannot be read")}, true},
		"nothing written":      {&APIError{Err: &spi.NotSentError{Attempted: true, Err: read}}, false},
		"connection lost":      {&APIError{Err: read}, true},
		"deadline":             {&APIError{Err: context.DeadlineExceeded}, true},
		"not sent":             {&APIError{Err: &spi.NotSentError{Err: read}}, false},
		"held back by others":  {&APIError{StatusCode: 503, Err: &spi.NotSentError{StatusCode: 503, Err: read}}, false},
		"not sent in time":     {&APIError{Err: &spi.NotSentError{Err: context.DeadlineExceeded}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			row.err.Call = callCreateServer
			if got := outcomeUnknown(row.err); got != row.want {
				t.Errorf("got %t, want %t", got, row.want)
			}
		})
	}
}
