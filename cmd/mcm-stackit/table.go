// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/finding"
)

// column is a column of a table.
type column struct {
	name string
	// wide says that it is shown by -o wide alone.
	wide bool
	// passing says that it changes with time, which is no news.
	passing bool
}

// row is a row of a table.
type row struct {
	// key tells the row from others, what names it in the lines of --watch.
	key, what string
	// name is what -o name prints.
	name  string
	cells []string
}

// table is data as text.
type table struct {
	columns []column
	rows    []row
	// news is the name of the column that says what a row that comes or goes is like.
	news string
}

// none is the cell without a value.
const none = "-"

// add adds a row with a cell for each column.
func (t *table) add(key, what, name string, cells ...string) {
	for i, cell := range cells {
		if cell = finding.OneLine(cell); cell == "" {
			cell = none
		}
		cells[i] = cell
	}
	t.rows = append(t.rows, row{key, finding.OneLine(what), finding.OneLine(name), cells})
}

// print writes the table, if it has rows.
func (t *table) print(out io.Writer, wide bool) error {
	if len(t.rows) == 0 {
		return nil
	}
	writer := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(cell func(i int) string) {
		var cells []string
		for i, column := range t.columns {
			if wide || !column.wide {
				cells = append(cells, cell(i))
			}
		}
		_, _ = fmt.Fprintln(writer, strings.Join(cells, "\t"))
	}
	line(func(i int) string { return t.columns[i].name })
	for _, row := range t.rows {
		line(func(i int) string { return row.cells[i] })
	}
	return writer.Flush()
}

// changesTo returns what is different in a later table, a line each: what, column, from and
// to.
func (t *table) changesTo(later *table, wide bool) []string {
	var lines []string
	before := map[string]row{}
	for _, row := range t.rows {
		before[row.key] = row
	}
	for _, now := range later.rows {
		was, known := before[now.key]
		delete(before, now.key)
		for i, column := range t.columns {
			from := none
			if known {
				from = was.cells[i]
			}
			shown := !column.passing && (wide || !column.wide) && (known || column.name == t.news || column.name == columnNote)
			if shown && from != now.cells[i] {
				lines = append(lines, change(now.what, column.name, from, now.cells[i]))
			}
		}
	}
	for _, row := range t.rows {
		if _, gone := before[row.key]; gone {
			lines = append(lines, change(row.what, t.news, row.cells[t.index(t.news)], none))
		}
	}
	return lines
}

func change(what, column, from, to string) string {
	return fmt.Sprintf("%s %s: %s -> %s", what, column, from, to)
}

func (t *table) index(name string) int {
	for i, column := range t.columns {
		if column.name == name {
			return i
		}
	}
	return -1
}
