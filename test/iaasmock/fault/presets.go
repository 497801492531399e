// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

const statusError = "ERROR"

// Preset is a ready-made fault with a name.
type Preset struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Fault       Fault  `json:"fault"`
}

// Presets returns the ready-made faults. A fault lasts until it is removed or its Duration is over.
// Narrow it with Count, Probability or Duration, with Server if it selects calls about servers, and
// with MachineType and Zone if it selects CreateServer.
func Presets() []Preset {
	all := slices.Concat(serverPresets(), answerPresets(), gatewayPresets(), connectionPresets(), tokenPresets(),
		delayPresets())
	for i := range all {
		all[i].Fault.Name = all[i].Name
	}
	return all
}

func presetFault(name string) (Fault, error) {
	var names []string
	for _, preset := range Presets() {
		if preset.Name == name {
			return preset.Fault, nil
		}
		names = append(names, preset.Name)
	}
	return Fault{}, fmt.Errorf("preset: unknown %q; known: %s", name, strings.Join(names, ", "))
}

func serverPresets() []Preset {
	const create = operationCreate
	return []Preset{
		{"no-capacity", "New servers end in ERROR: no host has room for them.", Fault{
			Operation: create, FinalStatus: statusError,
			ErrorMessage: "No valid host was found. There are not enough hosts available."}},
		{"quota-exceeded", "CreateServer is refused: the project's quota is used up.", Fault{
			Operation: create, Status: http.StatusForbidden,
			Body: `{"code":403,"msg":"Quota exceeded for cores: Requested 2, but already used 20 of 20 cores"}`}},
		{"full-zone", "New servers in zone eu01-1 end in ERROR: no host of the zone has room for them.", Fault{
			Operation: create, Zone: "eu01-1", FinalStatus: statusError,
			ErrorMessage: "No valid host was found. There are not enough hosts available."}},
		{"boot-error", "New servers end in ERROR: they cannot be built.", Fault{
			Operation: create, FinalStatus: statusError,
			ErrorMessage: "Build of instance aborted: Failed to allocate the network(s), not rescheduling."}},
		{"stuck-creating", "New servers stay CREATING.", Fault{Operation: create, NeverBoots: true}},
		{"stuck-deleting", "Deleted servers stay DELETING until they are deleted again.", Fault{
			Operation: "DeleteServer", NeverGone: true}},
		{"delete-error", "Deleted servers end in ERROR.", Fault{
			Operation: "DeleteServer", FinalStatus: statusError, ErrorMessage: "Failed to detach the volume."}},
		{"duplicate-servers", "Each CreateServer creates two servers; the answer shows one of them.",
			Fault{Operation: create, Duplicate: true}},
		{"dropped-labels", "CreateServer creates servers without the requested labels.",
			Fault{Operation: create, DropLabels: true}},
		{"wrong-server", "CreateServer creates the server, and answers with another server of the project.", Fault{
			Operation: create, OtherServer: AnyServer, Executed: true}},
		{"stale-lists", "Lists of servers show the state of 30 seconds ago.",
			Fault{Operation: "ListServers", Stale: 30 * time.Second}},
		{"empty-lists", "Lists of servers are empty although there are servers.",
			Fault{Operation: "ListServers", EmptyList: true}},
		{"empty-project", "For 8 seconds there seem to be no servers, NICs or volumes.", Fault{
			Operation: OperationIaaS, EmptyProject: true, Duration: 8 * time.Second}},
		{"stale-reads", "GetServer shows the state of 10 seconds ago.",
			Fault{Operation: "GetServer", Stale: 10 * time.Second}},
	}
}

func answerPresets() []Preset {
	answer := func(status int) Fault { return Fault{Operation: OperationIaaS, Status: status} }
	limited := SourceLimit(0, 0)
	later, creations := limited, limited
	later.Header = http.Header{"Retry-After": {"5"}}
	creations.Operation, creations.Rate, creations.Burst = operationCreate, 2, 4
	return []Preset{
		{"bad-request", "CreateServer answers 400.", Fault{Operation: operationCreate, Status: http.StatusBadRequest,
			Body: `{"code":400,"msg":"The affinity group policy is not supported"}`}},
		{"unauthorized", "The API answers 401.", answer(http.StatusUnauthorized)},
		{"forbidden", "The API answers 403.", answer(http.StatusForbidden)},
		{"random-404", "One GetServer in ten answers 404 although the server exists.", Fault{
			Operation: "GetServer", Probability: 0.1, Status: http.StatusNotFound,
			Body: `{"code":404,"msg":"server not found"}`}},
		{"project-404", "The API answers 404: there is no such project.", Fault{
			Operation: OperationIaaS, Status: http.StatusNotFound, Body: `{"code":404,"msg":"project not found"}`}},
		{"conflict", "DeleteServer answers 409.", Fault{Operation: "DeleteServer", Status: http.StatusConflict}},
		{"too-large", "CreateServer answers 413.",
			Fault{Operation: operationCreate, Status: http.StatusRequestEntityTooLarge}},
		{"rate-limited", "The API answers 429.", limited},
		{"rate-limited-retry-after", "The API answers 429 with Retry-After: 5.", later},
		{"rate-limited-creations", "CreateServer accepts 2 calls a second, 4 at once, and answers 429 to the others.",
			creations},
		{"rate-limited-source", "Each source address may make 10 calls a second, 20 at once; others are answered with 429.",
			SourceLimit(10, 20)},
		{"internal-error-empty", "The API answers 500 without a body.", Fault{
			Operation: OperationIaaS, Status: http.StatusInternalServerError, ContentType: "text/plain"}},
		{"unavailable", "The API answers 503.", answer(http.StatusServiceUnavailable)},
		{"lists-unavailable", "Lists of servers answer 503; everything else works.", Fault{
			Operation: "ListServers", Status: http.StatusServiceUnavailable}},
		{"gateway-timeout", "CreateServer creates the server and answers 504.", Fault{
			Operation: operationCreate, Status: http.StatusGatewayTimeout, Executed: true,
			ContentType: "text/plain", Body: "upstream request timeout"}},
	}
}

// SourceLimit returns a fault that limits each source address to rate calls per second, and burst
// calls at once; rate 0 lets no call pass. STACKIT limits all calls of a source address together and
// sends no Retry-After: stackit-s3-provisioner recorded this answer of the object-storage API
// (2026-09-02). Clients behind one address share the limit.
func SourceLimit(rate float64, burst int) Fault {
	return Fault{Operation: OperationIaaS, Rate: rate, Burst: burst, Status: http.StatusTooManyRequests,
		Body: `{"status":429,"error":"Too Many Requests","message":"rate limit on IP level exceeded; ` +
			`please try again later"}`}
}

// gatewayPresets are answers of gateways instead of the API's. Seen by stackit-s3-provisioner: pages with 403 for
// two minutes (2026-08-25), with 503 for twenty (2026-09-02), and the form with a path (2026-08-25); by
// users of terraform-provider-stackit: the texts with 401 (issues 378 and 709) and 503 (issue 747).
func gatewayPresets() []Preset {
	page := func(status int) Fault {
		return Fault{Operation: OperationIaaS, Status: status, ContentType: "text/html"}
	}
	text := func(status int, body string) Fault {
		return Fault{Operation: OperationIaaS, Status: status, ContentType: "text/plain", Body: body}
	}
	return []Preset{
		{"gateway-page", "The gateway answers 403 with its HTML page; set status for the page of another status.",
			page(http.StatusForbidden)},
		{"bad-gateway", "A gateway answers 502 with its HTML page.", page(http.StatusBadGateway)},
		{"gateway-jwks", "The gateway answers 401 in plain text: it does not know the key that signed the token.",
			text(http.StatusUnauthorized, "Jwks doesn't have key to match kid or alg from Jwt")},
		{"gateway-reset", "The gateway answers 503 in plain text: it lost its connection to the API.",
			text(http.StatusServiceUnavailable,
				"upstream connect error or disconnect/reset before headers. reset reason: connection termination")},
		{"forbidden-path", "The API answers 403 in the form of STACKIT's other services.", Fault{
			Operation: OperationIaaS, Status: http.StatusForbidden, Body: `{"timestamp":"2026-08-25T08:13:00.000+00:00",` +
				`"path":"/v2/projects","status":403,"error":"Forbidden","message":"Unauthorized"}`}},
	}
}

func connectionPresets() []Preset {
	return []Preset{
		{"lost-answers", "CreateServer creates the server; the connection is reset before the answer.", Fault{
			Operation: operationCreate, DropAfter: true}},
		{"reset-before", "Connections are reset before the call is executed.",
			Fault{Operation: OperationIaaS, DropBefore: true}},
		{"hanging", "Calls are executed and never answered.", Fault{Operation: OperationIaaS, NeverAnswers: true}},
		{"half-answers", "Answers end in the middle of the body.", Fault{Operation: OperationIaaS, HalfAnswer: true}},
	}
}

func tokenPresets() []Preset {
	const token = OperationToken
	return []Preset{
		{"token-down", "The token endpoint answers 503.", Fault{
			Operation: token, Status: http.StatusServiceUnavailable, ContentType: "text/plain", Body: "no healthy upstream"}},
		{"token-404", "The token endpoint answers 404.", Fault{
			Operation: token, Status: http.StatusNotFound, ContentType: "text/plain", Body: "404 page not found\n"}},
		{"token-slow", "The token endpoint takes 10 seconds.", Fault{Operation: token, Delay: 10 * time.Second}},
		{"token-without-exp", "Access tokens have no expiry (exp).",
			Fault{Operation: token, TokenWithoutExpiry: true}},
		{"token-skew", "The mock's clock is two hours behind: by the client's clock every token has expired.", Fault{
			Operation: token, TokenSkew: -2 * time.Hour}},
	}
}

func delayPresets() []Preset {
	return []Preset{
		{"brown-out", "For one minute every call takes 2 to 8 seconds.", Fault{
			Delay: 2 * time.Second, DelayMax: 8 * time.Second, Duration: time.Minute}},
		{"slow", "Calls take 0.5 to 3 seconds.", Fault{
			Operation: OperationIaaS, Delay: 500 * time.Millisecond, DelayMax: 3 * time.Second}},
	}
}
