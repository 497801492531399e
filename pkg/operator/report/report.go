// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package report defines findings, with their verdict and position, and exit codes. It also makes
// text from outside safe for a terminal.
package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Exit codes of every command.
const (
	// ExitFine means that nothing is wrong; of list and describe, that nothing is unknown.
	ExitFine = 0
	// ExitWrong means that a check found an error, or that a server was not deleted.
	ExitWrong = 1
	// ExitUnknown means that something could not be read, checked or found. The output gives the reason.
	ExitUnknown = 2
	// ExitUsage means that the command line is invalid.
	ExitUsage = 64
)

// Verdict is the result of a check.
type Verdict string

// The verdicts.
const (
	// Fine means that the subject was checked and is correct.
	Fine Verdict = "fine"
	// Wrong means that the subject has an error.
	Wrong Verdict = "wrong"
	// Unknown means that the subject could not be checked.
	Unknown Verdict = "unknown"
	// Hint means that nothing is wrong, but something is worth knowing. It does not change the exit code.
	Hint Verdict = "hint"
)

// Position is a place in a manifest; the zero value means no position. Line and Column start at 1,
// and are 0 for a file that could not be read.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// String returns the position as compilers write it: file:line:column, or only the file if Line is 0.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Finding is the result of one check. It never contains a secret.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	// Subject is what was checked, such as "MachineClass default/worker" or "clock".
	Subject string `json:"subject"`
	// Position is the subject's place in a file, if it came from a file.
	Position Position `json:"position,omitzero"`
	// Field is the path of the field concerned; "" if there is none.
	Field string `json:"field,omitempty"`
	// Found describes in one line what was found, and how to fix it.
	Found string `json:"found"`
}

// String returns the finding in one line, the verdict first: verdict file:line:column: subject: field: found.
func (f Finding) String() string {
	parts := slices.DeleteFunc([]string{f.Position.String(), f.Subject, f.Field, f.Found},
		func(part string) bool { return part == "" })
	return fmt.Sprintf("%-7s  %s", f.Verdict, strings.Join(parts, ": "))
}

// Findings holds the findings of a command, in the order of its checks.
type Findings []Finding

// Count counts the findings by verdict.
func (f Findings) Count() map[Verdict]int {
	count := map[Verdict]int{}
	for i := range f {
		count[f[i].Verdict]++
	}
	return count
}

// ExitCode returns ExitWrong if any finding is Wrong, else ExitUnknown if any is Unknown, else ExitFine.
func (f Findings) ExitCode() int {
	switch count := f.Count(); {
	case count[Wrong] > 0:
		return ExitWrong
	case count[Unknown] > 0:
		return ExitUnknown
	default:
		return ExitFine
	}
}

// OneLine makes text from outside safe for a terminal: one line, without control characters.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.Join(strings.Fields(text), " "))
}

// Some joins up to three names with commas; of more names, it joins the first three and counts the
// others: "a, b, c and 4 more".
func Some(names []string) string {
	const maxNames = 3
	if len(names) <= maxNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
}

// Count formats a number with its noun: "1 server", "2 servers".
func Count(number int, noun string) string {
	switch {
	case number == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %ses", number, noun)
	default:
		return fmt.Sprintf("%d %ss", number, noun)
	}
}
