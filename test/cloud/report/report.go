// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package report writes what a run has measured as a table to send back, and all exchanges beside
// it. It takes out of texts what is nobody's business: IDs, mail addresses, tokens and keys.
package report

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Row is one assumption about the API.
type Row struct {
	// Assumption is what the driver takes for true, or what nobody knows.
	Assumption string
	// Seen is what the run has measured, empty for nothing.
	Seen string
	// Where are the files of the driver that rest on it, from the repository's root.
	Where []string
}

// Report is what a run sends back.
type Report struct {
	// Endpoint is the base URL of the API; Version has the commit.
	Run, Version, Endpoint, Region, MachineType string
	// Result is how the run ended, in a sentence; Cost, what it has used.
	Result, Cost string
	// Findings are what broke the driver's assumptions.
	Findings []string
	Rows     []Row
}

// Write writes the report as Markdown. What comes from the API passes Redact.
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
	text.WriteString("| The driver assumes, or nobody knows | Seen | Rests on it |\n|---|---|---|\n")
	for _, row := range r.Rows {
		seen := row.Seen
		if seen == "" {
			seen = "not met"
		}
		fmt.Fprintf(&text, "| %s | %s | %s |\n", cell(row.Assumption), cell(seen), cell(strings.Join(row.Where, ", ")))
	}
	// A commit looks like an ID.
	_, err := fmt.Fprintf(out, "# Run %s against %s\n\nRegion %s, machine type %s, version %s.\n%s",
		r.Run, r.Endpoint, r.Region, r.MachineType, r.Version, Redact(text.String()))
	return err
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// cell keeps a text on one line of a table.
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

// Redact takes out what identifies somebody: all IDs, mail, IP and MAC addresses, tokens and
// keys.
func Redact(text string) string {
	for _, secret := range secrets {
		text = secret.found.ReplaceAllString(text, secret.shown)
	}
	return text
}

// Hiding is a writer for the terminal, where the IDs of servers help: it hides some words alone.
type Hiding struct {
	out    io.Writer
	hidden *strings.Replacer
}

// Hide returns a writer that shows "(hidden)" for each of the words.
func Hide(out io.Writer, words ...string) *Hiding {
	var pairs []string
	for _, word := range words {
		if word != "" {
			pairs = append(pairs, word, "(hidden)")
		}
	}
	return &Hiding{out: out, hidden: strings.NewReplacer(pairs...)}
}

// Write implements io.Writer. A word that is written in two parts is not found: what is
// written here comes in lines. It never fails: whoever has closed the terminal, the run goes on
// to delete what it has made.
func (h *Hiding) Write(content []byte) (int, error) {
	_, _ = h.hidden.WriteString(h.out, string(content))
	return len(content), nil
}
