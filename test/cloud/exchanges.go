// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// exchanges writes each exchange with the API as a redacted line of JSON: the file has the answers that no row
// of the report foresaw. It is safe for concurrent use.
type exchanges struct {
	// isOurs reports whether an item of a list, as JSON, belongs to the run. Other items are only counted.
	isOurs  func(item string) bool
	started time.Time

	mu  sync.Mutex
	out io.Writer
	// numbers replace what is private: the same text has the same number everywhere.
	numbers map[string]int
	// headers are the names of the headers in answers of the API, with the values of those about limits.
	headers map[string]bool
	// claims describes the claims of the access token; "" before the first request with a token.
	claims string
	err    error
}

func newExchanges(out io.Writer, isOurs func(string) bool) *exchanges {
	return &exchanges{
		out: out, isOurs: isOurs, started: time.Now(), numbers: map[string]int{}, headers: map[string]bool{},
	}
}

// recorder sends requests through next, and writes them with their answers.
type recorder struct {
	exchanges *exchanges
	next      http.RoundTripper
}

// maxBody is the size of the largest body that is read, in bytes.
const maxBody = 16 << 20

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	began := time.Now()
	response, err := r.next.RoundTrip(request)
	line := &exchange{
		At: "+" + began.Sub(r.exchanges.started).Round(time.Millisecond).String(), Method: request.Method,
		Path: request.URL.Path, Query: request.URL.RawQuery,
	}
	isAPI := strings.Contains(request.URL.Path, "/regions/")
	if isAPI { // Bodies for the token endpoint are credentials.
		line.sent = sentBody(request)
	}
	if err == nil {
		var body []byte
		if body, err = io.ReadAll(io.LimitReader(response.Body, maxBody)); err == nil {
			err = response.Body.Close()
		}
		response.Body = io.NopCloser(bytes.NewReader(body))
		line.Status, line.header = response.StatusCode, response.Header
		if isAPI {
			line.answer = body
		}
	}
	if err != nil {
		line.Error = err.Error()
		response = nil
	}
	line.Took = time.Since(began).Round(time.Millisecond).String()
	if isAPI {
		r.exchanges.remember(request.Header.Get("Authorization"), line)
	}
	r.exchanges.write(line)
	return response, err
}

// sentBody returns the request's body. The SDK sets GetBody, as net/http does for buffers.
func sentBody(request *http.Request) []byte {
	if request.GetBody == nil {
		return nil
	}
	body, err := request.GetBody()
	if err != nil {
		return nil
	}
	content, _ := io.ReadAll(body) // a buffer
	return content
}

// exchange is a line of the file.
type exchange struct {
	At      string   `json:"at,omitempty"`
	Took    string   `json:"took,omitempty"`
	Method  string   `json:"method,omitempty"`
	Path    string   `json:"path,omitempty"`
	Query   string   `json:"query,omitempty"`
	Sent    any      `json:"sent,omitempty"`
	Status  int      `json:"status,omitempty"`
	Headers []string `json:"headers,omitempty"`
	Answer  any      `json:"answer,omitempty"`
	Error   string   `json:"error,omitempty"`
	// Sidecar is a line of the sidecar's log about an API call; then the other fields are empty.
	Sidecar string `json:"sidecar,omitempty"`

	sent, answer []byte
	header       http.Header
}

// write redacts the line and writes it.
func (x *exchanges) write(e *exchange) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e.Path, e.Query, e.Error, e.Sidecar = x.redact(e.Path), x.redact(e.Query), x.redact(e.Error), x.redact(e.Sidecar)
	e.Sent, e.Answer = x.body(e.sent), x.body(e.answer)
	for _, header := range shownHeaders(e) {
		e.Headers = append(e.Headers, x.redact(header))
	}
	encoder := json.NewEncoder(x.out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		x.err = err
	}
}

// failure returns why not all lines could be written.
func (x *exchanges) failure() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

// remember notes what the rows about headers and claims show.
func (x *exchanges) remember(authorization string, e *exchange) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, header := range shownHeaders(e) {
		x.headers[header] = true
	}
	if token, ok := strings.CutPrefix(authorization, "Bearer "); ok && x.claims == "" {
		x.claims = describeClaims(token)
	}
}

// headerRow returns the headers of all answers so far.
func (x *exchanges) headerRow() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(x.headers)), ", ")
}

// claimRow describes the claims of the access token, "" if no request had one.
func (x *exchanges) claimRow() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.claims
}

// shownHeaders returns the names of an answer's headers, with the values of those about limits: others may
// have secrets.
func shownHeaders(e *exchange) (shown []string) {
	for name := range e.header {
		if lower := strings.ToLower(name); strings.Contains(lower, "limit") || lower == "retry-after" {
			name = fmt.Sprintf("%s: %s (with %d)", name, e.header.Get(name), e.Status)
		}
		shown = append(shown, name)
	}
	slices.Sort(shown)
	return shown
}

// describeClaims returns the names of a token's claims and its lifetime.
func describeClaims(token string) string {
	claims := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(token, claims); err != nil {
		return "the token is not a JWT"
	}
	text := strings.Join(slices.Sorted(maps.Keys(claims)), ", ")
	issued, _ := claims.GetIssuedAt()
	expires, _ := claims.GetExpirationTime()
	if issued != nil && expires != nil {
		text += fmt.Sprintf("; valid for %.0f s", expires.Sub(issued.Time).Seconds())
	}
	return text
}

// redact replaces everything private by its number.
func (x *exchanges) redact(text string) string {
	return private.ReplaceAllStringFunc(text, func(found string) string {
		found = strings.ToLower(found)
		if x.numbers[found] == 0 {
			x.numbers[found] = len(x.numbers) + 1
		}
		return fmt.Sprintf("(hidden %d)", x.numbers[found])
	})
}

// body redacts a body: as JSON if it is, or else as text.
func (x *exchanges) body(content []byte) any {
	if len(content) == 0 {
		return nil
	}
	var parsed any
	if json.Unmarshal(content, &parsed) != nil {
		return x.redact(string(content))
	}
	return x.value("", parsed)
}

// value redacts a value of JSON.
func (x *exchanges) value(key string, value any) any {
	switch value := value.(type) {
	case string:
		if key == "userData" {
			return fmt.Sprintf("(%d characters)", len(value))
		}
		return x.redact(value)
	case []any:
		return x.items(key, value)
	case map[string]any:
		object := map[string]any{}
		for name, field := range value {
			object[x.redact(name)] = x.value(name, field)
		}
		return object
	}
	return value
}

// items redacts an array. Of a list of resources, it only counts those that are not the run's.
func (x *exchanges) items(key string, items []any) any {
	shown, others := []any{}, 0
	for _, item := range items {
		if encoded, err := json.Marshal(item); key == "items" && (err != nil || !x.isOurs(string(encoded))) {
			others++
			continue
		}
		shown = append(shown, x.value("", item))
	}
	if others > 0 {
		shown = append(shown, fmt.Sprintf("(and %d that are not the run's)", others))
	}
	return shown
}
