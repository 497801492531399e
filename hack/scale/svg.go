// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"strings"
)

// dashes is a stroke that is told from a solid one without its colour.
const dashes = "6 4"

// canvas writes SVG. The background is white: the plot is to be legible on any
// page.
type canvas struct {
	strings.Builder
}

func newCanvas(width, height float64) *canvas {
	c := &canvas{}
	c.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="system-ui, sans-serif">
<style>.title{font-size:16px;font-weight:600}.head{font-size:13px;font-weight:600}.key{font-size:13px}.tick{font-size:11px;fill:#4b5563}</style>
<rect width="100%%" height="100%%" fill="#ffffff"/>
`, width, height)
	return c
}

// add writes to a strings.Builder, which never fails.
func (c *canvas) add(format string, args ...any) { _, _ = fmt.Fprintf(&c.Builder, format, args...) }

// String returns the whole document.
func (c *canvas) String() string { return c.Builder.String() + "</svg>\n" }

// text writes at a baseline; anchor is start, middle or end.
func (c *canvas) text(x, y float64, anchor, class, text string) {
	if text == "" {
		return
	}
	c.add("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">%s</text>\n", x, y, anchor, class, html.EscapeString(text))
}

func (c *canvas) path(path, colour, dash string) {
	if path == "" {
		return
	}
	c.add("<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s/>\n", path, colour, dashed(dash))
}

func (c *canvas) grid(x1, y1, x2, y2 float64) {
	c.add("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#d1d5db\"/>\n", x1, y1, x2, y2)
}

func (c *canvas) rectangle(x, y, width, height float64, colour string) {
	c.add("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y, width, height, colour)
}

// legendEntry explains a stroke.
type legendEntry struct {
	colour, dash, text string
}

func (c *canvas) legend(x, y float64, entries []legendEntry) {
	for _, e := range entries {
		c.add("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"3\"%s/>\n",
			x, y, x+28, y, e.colour, dashed(e.dash))
		c.text(x+36, y+4, "start", "key", e.text)
		// Letters of this size are about 7 wide.
		x += 36 + 7*float64(len(e.text)) + 24
	}
}

func dashed(dash string) string {
	if dash == "" {
		return ""
	}
	return fmt.Sprintf(" stroke-dasharray=%q", dash)
}
