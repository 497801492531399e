// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Report is a run's report.
type Report struct {
	// Endpoint is the base URL of the API; Version contains the commit.
	Run, Version, Endpoint, Region, MachineType string
	// Result says how the run ended; Used, how long it took and how many servers it made.
	Result, Used string
	Rows         []Row
}

// Write writes the report as Markdown. Everything from the API is redacted.
func (r Report) Write(out io.Writer) error {
	text := fmt.Sprintf("%s\n\n%s\n\n## What was measured\n\n", r.Used, oneLine(r.Result)) +
		"| The driver assumes, or nobody knows | Seen |\n|---|---|\n"
	for _, row := range r.Rows {
		seen := strings.ReplaceAll(oneLine(cmp.Or(row.Seen, "not met")), "|", `\|`)
		text += fmt.Sprintf("| %s | %s |\n", row.Assumption, seen)
	}
	// A commit looks like an ID.
	_, err := fmt.Fprintf(out, "# Run %s against %s\n\nRegion %s, machine type %s, version %s.\n%s",
		r.Run, r.Endpoint, r.Region, r.MachineType, r.Version, Redact(text))
	return err
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// private matches what identifies somebody: keys, tokens, mail addresses, IDs, IPv4, MAC and IPv6 addresses.
var private = regexp.MustCompile(`-----BEGIN[^-]*-----[^-]*(-----END[^-]*-----)?` +
	`|eyJ[A-Za-z0-9_=-]+(\.[A-Za-z0-9_=-]*)*` +
	`|[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+` +
	`|(?i:[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12})` +
	`|\b([0-9]{1,3}\.){3}[0-9]{1,3}\b` +
	`|(?i:\b([0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b)` +
	`|(?i:\b([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}\b|[0-9a-f:]*::[0-9a-f:]*)`)

// Redact replaces what identifies somebody.
func Redact(text string) string { return private.ReplaceAllString(text, "(hidden)") }

// Exchanges writes each exchange with the API as a redacted line of JSON: it has what no row foresaw.
// What is redacted is replaced by the same number everywhere.
type Exchanges struct {
	out io.Writer
	// prefix begins the names of the run's resources; others belong to somebody else.
	prefix  string
	started time.Time

	mu      sync.Mutex
	numbers map[string]int
	err     error
}

// NewExchanges returns a writer for the run whose names begin with the prefix.
func NewExchanges(out io.Writer, prefix string) *Exchanges {
	return &Exchanges{out: out, prefix: prefix, started: time.Now(), numbers: map[string]int{}}
}

// Err returns why not all lines could be written.
func (x *Exchanges) Err() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

func (x *Exchanges) write(e Exchange) {
	x.mu.Lock()
	defer x.mu.Unlock()
	line := struct {
		At       string   `json:"at"`
		Took     string   `json:"took"`
		Method   string   `json:"method"`
		Path     string   `json:"path"`
		Selector string   `json:"selector,omitempty"`
		Sent     any      `json:"sent,omitempty"`
		Status   int      `json:"status"`
		Headers  []string `json:"headers,omitempty"`
		Answer   any      `json:"answer,omitempty"`
	}{
		At:     "+" + e.Begin.Sub(x.started).Round(time.Millisecond).String(),
		Took:   e.End.Sub(e.Begin).Round(time.Millisecond).String(),
		Method: e.Method, Path: x.redact(e.Path), Selector: x.redact(e.Query.Get("label_selector")),
		Sent: x.body(e, e.Sent), Status: e.Status, Answer: x.body(e, e.Body),
	}
	for _, header := range headers(e.Answer) {
		line.Headers = append(line.Headers, x.redact(header))
	}
	encoder := json.NewEncoder(x.out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(line); err != nil {
		x.err = err
	}
}

func (x *Exchanges) redact(text string) string {
	return private.ReplaceAllStringFunc(text, func(found string) string {
		found = strings.ToLower(found)
		if x.numbers[found] == 0 {
			x.numbers[found] = len(x.numbers) + 1
		}
		return fmt.Sprintf("(hidden %d)", x.numbers[found])
	})
}

const maxText = 2000

// text redacts the beginning of a text: before the cut, since half an address looks like none.
func (x *Exchanges) text(text string) string {
	text = x.redact(text)
	return text[:min(len(text), maxText)]
}

// body redacts a body: as JSON, or the beginning of a text.
func (x *Exchanges) body(e Exchange, content []byte) any {
	if len(content) == 0 {
		return nil
	}
	var parsed any
	if json.Unmarshal(content, &parsed) != nil {
		return x.text(string(content))
	}
	// The API gives the parts of the run's servers names of its own.
	named := e.Kind() == ListNetworks || strings.HasPrefix(e.Path, "/servers")
	return x.value("", parsed, named)
}

// somebodys stands for a server or a network without a name of the run.
const somebodys = "(not the run's)"

// value redacts a field. With named, objects with a name are the run's by that.
func (x *Exchanges) value(key string, value any, named bool) any {
	switch value := value.(type) {
	case string:
		if key == "userData" || key == "output" {
			// The second is a console log, to which cloud-init prints passwords.
			return fmt.Sprintf("(%d characters)", len(value))
		}
		return x.text(value)
	case []any:
		shown, others := []any{}, 0
		for _, item := range value {
			if redacted := x.value("", item, named); redacted == somebodys {
				others++
			} else {
				shown = append(shown, redacted)
			}
		}
		if others > 0 {
			shown = append(shown, fmt.Sprintf("(and %d that are not the run's)", others))
		}
		return shown
	case map[string]any:
		if name, is := value["name"].(string); is && named && !strings.HasPrefix(name, x.prefix) {
			return somebodys
		}
		object := map[string]any{}
		for name, field := range value {
			object[x.redact(name)] = x.value(name, field, named)
		}
		return object
	}
	return value
}
