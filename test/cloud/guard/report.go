// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Report is a run's report.
type Report struct {
	// Endpoint is the base URL of the API; Version contains the commit.
	Run, Version, Endpoint, Region, MachineType string
	// Result says in a sentence how the run ended; Cost, what it has used.
	Result, Cost string
	// Findings are observations that contradict the driver's assumptions.
	Findings []string
	Rows     []Row
}

// Write writes the report as Markdown. Everything from the API is redacted.
func (r Report) Write(out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n\n%s\n", r.Cost, oneLine(r.Result))
	if len(r.Findings) > 0 {
		text.WriteString("\n## What broke an assumption\n\n")
		for _, finding := range r.Findings {
			fmt.Fprintf(&text, "- %s\n", oneLine(finding))
		}
	}
	text.WriteString("\n## What was measured\n\n")
	text.WriteString("| The driver assumes, or nobody knows | Seen |\n|---|---|\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&text, "| %s | %s |\n", cell(row.Assumption), cell(cmp.Or(row.Seen, "not met")))
	}
	// A commit looks like an ID.
	_, err := fmt.Fprintf(out, "# Run %s against %s\n\nRegion %s, machine type %s, version %s.\n%s",
		r.Run, r.Endpoint, r.Region, r.MachineType, r.Version, Redact(text.String()))
	return err
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// cell makes a text fit into a table's cell.
func cell(text string) string { return strings.ReplaceAll(oneLine(text), "|", `\|`) }

var ids = regexp.MustCompile(`(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}`)

var secrets = []struct {
	found *regexp.Regexp
	shown string
}{
	{regexp.MustCompile(`-----BEGIN[^-]*-----[^-]*(-----END[^-]*-----)?`), "(key)"},
	{regexp.MustCompile(`eyJ[A-Za-z0-9_=-]+(\.[A-Za-z0-9_=-]*)*`), "(token)"},
	{regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+`), "(mail address)"},
	{ids, "(ID)"},
	{regexp.MustCompile(`\b([0-9]{1,3}\.){3}[0-9]{1,3}\b`), "(address)"},
	{regexp.MustCompile(`(?i)\b([0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b`), "(address)"},
	{regexp.MustCompile(`(?i)\b([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}\b|[0-9a-f:]*::[0-9a-f:]*`), "(address)"},
}

// Redact replaces what identifies somebody: IDs, mail, IP and MAC addresses, tokens and keys.
func Redact(text string) string {
	for _, secret := range secrets {
		text = secret.found.ReplaceAllString(text, secret.shown)
	}
	return text
}

// hiding is a writer for the terminal. It hides only one word, since server IDs help there.
type hiding struct {
	out    io.Writer
	hidden *strings.Replacer
}

// Hide returns a writer that shows "(hidden)" for a word.
func Hide(out io.Writer, word string) io.Writer {
	return &hiding{out: out, hidden: strings.NewReplacer(word, "(hidden)")}
}

// Write expects whole lines: a word that is split over two calls is not found. It never fails, so that a
// run whose terminal was closed goes on to delete what it has created.
func (h *hiding) Write(content []byte) (int, error) {
	_, _ = h.hidden.WriteString(h.out, string(content))
	return len(content), nil
}

// Exchanges writes each exchange with the API as a redacted line of JSON: it has what no row foresaw.
// An ID is replaced by the same number everywhere.
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

// redact replaces each ID by a number of its own.
func (x *Exchanges) redact(text string) string {
	return Redact(ids.ReplaceAllStringFunc(text, func(id string) string {
		id = strings.ToLower(id)
		if x.numbers[id] == 0 {
			x.numbers[id] = len(x.numbers) + 1
		}
		return fmt.Sprintf("(ID %d)", x.numbers[id])
	}))
}

// secretHeader matches the names of headers whose values may be anybody's secret.
var secretHeader = regexp.MustCompile(`(?i)cookie|token|auth|key|secret|cert|session`)

// headers returns the headers. Those that may have a secret are named alone.
func (x *Exchanges) headers(header http.Header) map[string]string {
	shown := map[string]string{}
	for name := range header {
		shown[name] = ""
		if !secretHeader.MatchString(name) {
			shown[name] = x.redact(header.Get(name))
		}
	}
	return shown
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
			// The second is a console log, to which cloud-init prints passwords.
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

// ofTheRun removes from an answer what is not the run's, and says so.
func (x *Exchanges) ofTheRun(e Exchange) []byte {
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
