// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package console is the mock's web page and its event stream. It reads the mock only
// through a Source.
package console

import (
	"bytes"
	"embed"
	"net/http"
	"path"
	"strings"
	"time"
)

// files are plain HTML, CSS and JavaScript, served unchanged.
//
//go:embed *.html *.css *.js *.svg
var files embed.FS

// policy lets the page load only its own files, and run no script that a server's name or
// an error message might contain.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// Prefix is the path of the page's files; the page itself is at /.
const Prefix = "/console/"

// Serve answers a GET with the page or one of its files; false if there is no such file.
func Serve(w http.ResponseWriter, r *http.Request) bool {
	name := "index.html"
	if r.URL.Path != "/" {
		name = strings.TrimPrefix(r.URL.Path, Prefix)
	}
	contentType, known := types[path.Ext(name)]
	content, err := files.ReadFile(name)
	if err != nil || !known {
		return false
	}
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	return true
}
