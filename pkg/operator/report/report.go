// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package report has what the tasks of mcm-stackit find: findings, how sure they are, where
// they are, and the exit code of them; and how texts of others are shown.
package report

import (
	"fmt"
	"strings"
	"unicode"
)

// Exit codes of every command.
const (
	// ExitFine means that nothing is wrong.
	ExitFine = 0
	// ExitWrong means that something is wrong, or was found that was looked for.
	ExitWrong = 1
	// ExitUnknown means that it could not be checked, with the reason.
	ExitUnknown = 2
	// ExitUsage means that the command line is wrong.
	ExitUsage = 64
)

// Verdict is what a Finding says of its subject.
type Verdict string

// The verdicts.
const (
	// Fine means that it was looked at and is right.
	Fine Verdict = "fine"
	// Wrong means that it is not right.
	Wrong Verdict = "wrong"
	// Unknown means that it could not be checked.
	Unknown Verdict = "unknown"
	// Hint means that nothing is wrong, but something is worth knowing. It does not change
	// the exit code.
	Hint Verdict = "hint"
)

// Position is a place in a manifest; the zero value is none. Line and Column count from 1; they are 0
// for a file that could not be read.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// String has the form of compilers: file:line:column.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Finding is one thing that was looked at. It never holds a secret.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	// Subject is what was looked at, such as "MachineClass default/worker" or "clock".
	Subject string `json:"subject"`
	// Position is where it stands, if it came from a file.
	Position Position `json:"position,omitzero"`
	// Field is the path of the field that the finding is about; "" if it is about none.
	Field string `json:"field,omitempty"`
	// Found is what was found, in one line.
	Found string `json:"found"`
	// Remedy is what is right, or how to mend it; "" if Found says it.
	Remedy string `json:"remedy,omitempty"`
}

// String has the form of compilers: file:line:column: subject: field: found; remedy.
func (f Finding) String() string {
	var parts []string
	if f.Position != (Position{}) {
		parts = append(parts, f.Position.String())
	}
	parts = append(parts, f.Subject)
	if f.Field != "" {
		parts = append(parts, f.Field)
	}
	text := strings.Join(append(parts, f.Found), ": ")
	if f.Remedy != "" {
		text += "; " + f.Remedy
	}
	return text
}

// Findings are what a command found, in the order in which it looked.
type Findings []Finding

// Count counts the findings by verdict.
func (f Findings) Count() map[Verdict]int {
	count := map[Verdict]int{}
	for i := range f {
		count[f[i].Verdict]++
	}
	return count
}

// ExitCode returns ExitWrong if anything is wrong, else ExitUnknown if anything could not be
// told, else ExitFine.
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

// OneLine makes a text of others fit for a terminal: one line, and nothing that a terminal
// would take for a command.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.Join(strings.Fields(text), " "))
}

// Some names the first of many: "a, b, c and 4 more".
func Some(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Count is a number with its noun: "1 server", "2 servers".
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
