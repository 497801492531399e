// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

type column struct {
	name string
	// wide says that it is shown by -o wide alone.
	wide bool
}

type row struct {
	// name is what -o name prints.
	name  string
	cells []string
}

// table is data as text.
type table struct {
	columns []column
	rows    []row
	// noHeaders leaves out the names of the columns.
	noHeaders bool
}

// none is the cell without a value.
const none = "-"

func (t *table) addRow(name string, cells ...string) {
	for i, cell := range cells {
		if cell = report.OneLine(cell); cell == "" {
			cell = none
		}
		cells[i] = cell
	}
	t.rows = append(t.rows, row{report.OneLine(name), cells})
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
	if !t.noHeaders {
		line(func(i int) string { return t.columns[i].name })
	}
	for _, row := range t.rows {
		line(func(i int) string { return row.cells[i] })
	}
	return writer.Flush()
}
