// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

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

// Quoted shows a value of a manifest: in one line, and not all of a long one.
func Quoted(value any) string {
	const most = 80
	text := fmt.Sprint(value)
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	if reflect.ValueOf(value).Kind() == reflect.String {
		return strconv.Quote(text)
	}
	return OneLine(text)
}
