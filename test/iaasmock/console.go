// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"bytes"
	"embed"
	"net/http"
	"path"
	"strings"
	"time"
)

// The page is plain HTML, CSS and script, served as it lies here.
//
//go:embed console
var consoleFiles embed.FS

// consolePolicy lets the page load its own files and nothing else, and run no
// script that a server's name or an error message might bring along.
const consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var consoleTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// consolePrefix is where the page's files lie; the page itself is at /.
const consolePrefix = "/console/"

// serveConsole answers with the page or a file of it.
func serveConsole(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		writeAdmin(w, http.StatusMethodNotAllowed, newError(http.StatusMethodNotAllowed, "method not allowed"))
		return
	}
	name := "index.html"
	if r.URL.Path != "/" {
		name = strings.TrimPrefix(r.URL.Path, consolePrefix)
	}
	contentType, known := consoleTypes[path.Ext(name)]
	content, err := consoleFiles.ReadFile("console/" + name)
	if err != nil || !known {
		writeAdmin(w, http.StatusNotFound, notFound("file"))
		return
	}
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Security-Policy", consolePolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}
