// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
)

// Exchanges writes each exchange with the API as a line of JSON, redacted: they have what no row
// foresaw. An ID has the same number wherever it stands. It is a guard.Observer.
type Exchanges struct {
	out io.Writer
	// prefix begins the names of the run; things with other names are somebody else's.
	prefix  string
	started time.Time

	mu      sync.Mutex
	numbers map[string]int
	err     error
}

// NewExchanges returns a writer of the exchanges of the run whose names begin with the prefix.
func NewExchanges(out io.Writer, prefix string) *Exchanges {
	return &Exchanges{out: out, prefix: prefix, started: time.Now(), numbers: map[string]int{}}
}

// Err returns why not all lines could be written.
func (x *Exchanges) Err() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

// Begun implements guard.Observer.
func (*Exchanges) Begun(guard.Exchange) {}

// Observe writes a line.
func (x *Exchanges) Observe(e guard.Exchange) {
	x.mu.Lock()
	defer x.mu.Unlock()
	line := struct {
		At      string            `json:"at"`
		Took    string            `json:"took"`
		Method  string            `json:"method"`
		Path    string            `json:"path"`
		Query   string            `json:"query,omitempty"`
		Sent    any               `json:"sent,omitempty"`
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers,omitempty"`
		Answer  any               `json:"answer,omitempty"`
	}{
		At:     "+" + e.Begin.Sub(x.started).Round(time.Millisecond).String(),
		Took:   e.End.Sub(e.Begin).Round(time.Millisecond).String(),
		Method: e.Method, Path: x.redact(e.Path), Status: e.Status,
		Sent: x.body(e.Sent), Headers: x.headers(e.Header), Answer: x.body(x.ofTheRun(e)),
	}
	if selector := e.Query.Get("label_selector"); selector != "" {
		line.Query = x.redact("label_selector=" + selector)
	}
	encoder := json.NewEncoder(x.out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(line); err != nil {
		x.err = err
	}
}

// redact keeps IDs apart by numbers.
func (x *Exchanges) redact(text string) string {
	return Redact(ids.ReplaceAllStringFunc(text, func(id string) string {
		id = strings.ToLower(id)
		if x.numbers[id] == 0 {
			x.numbers[id] = len(x.numbers) + 1
		}
		return fmt.Sprintf("(ID %d)", x.numbers[id])
	}))
}

// headers takes the values that may matter; of the others it takes the names.
func (x *Exchanges) headers(header http.Header) map[string]string {
	shown := map[string]string{}
	for name := range header {
		shown[name] = ""
		if telling(name) {
			shown[name] = x.redact(header.Get(name))
		}
	}
	return shown
}

// telling says that a header's value is about the call.
func telling(name string) bool {
	name = strings.ToLower(name)
	return name == "content-type" || name == "retry-after" || name == "date" ||
		strings.Contains(name, "limit") || strings.Contains(name, "request-id") || strings.Contains(name, "trace")
}

const maxText = 2000

// body redacts a body: as JSON, or the beginning of a text.
func (x *Exchanges) body(content []byte) any {
	if len(content) == 0 {
		return nil
	}
	var parsed any
	if json.Unmarshal(content, &parsed) == nil {
		return x.value("", parsed)
	}
	return x.redact(string(content[:min(len(content), maxText)]))
}

func (x *Exchanges) value(key string, value any) any {
	switch value := value.(type) {
	case string:
		switch key {
		case "userData", "output":
			// The second is a console log: cloud-init prints passwords there.
			return fmt.Sprintf("(%d characters)", len(value))
		}
		return x.redact(value[:min(len(value), maxText)])
	case []any:
		shown := []any{}
		for _, item := range value {
			shown = append(shown, x.value("", item))
		}
		return shown
	case map[string]any:
		object := map[string]any{}
		for name, field := range value {
			object[x.redact(name)] = x.value(name, field)
		}
		return object
	}
	return value
}

// ofTheRun leaves out of an answer about the project what is not the run's, and says so.
func (x *Exchanges) ofTheRun(e guard.Exchange) []byte {
	var answer struct {
		Name  string
		Items []map[string]any
	}
	if json.Unmarshal(e.Body, &answer) != nil {
		return e.Body
	}
	if strings.HasPrefix(e.Path, "/servers") && answer.Name != "" && !strings.HasPrefix(answer.Name, x.prefix) {
		return []byte(`"(without a name of the run)"`)
	}
	if answer.Items == nil || ids.MatchString(e.Path) {
		return e.Body
	}
	shown := []any{}
	for _, item := range answer.Items {
		if name, _ := item["name"].(string); strings.HasPrefix(name, x.prefix) {
			shown = append(shown, item)
		}
	}
	if others := len(answer.Items) - len(shown); others > 0 {
		shown = append(shown, fmt.Sprintf("(and %d without a name of the run)", others))
	}
	body, err := json.Marshal(map[string]any{"items": shown})
	if err != nil {
		return nil
	}
	return body
}
