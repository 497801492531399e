// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func ReadText(t *testing.T, text string) ([]*Manifest, error) {
	t.Helper()
	manifests, broken, err := Read(t.Context(), []string{Stdin}, strings.NewReader(text), "default")
	if len(broken) > 0 {
		err = broken[0]
	}
	return manifests, err
}

func TestManifestIsReadAsItIsMeant(t *testing.T) {
	for name, row := range map[string]struct{ text, json, path, position string }{
		"anchor outside of a List's item": {`apiVersion: v1
kind: List
anchors: &labels {a/cluster: c}
items:
- apiVersion: v1
  kind: Secret
  metadata: {name: x, labels: *labels}
`, `{"apiVersion":"v1","kind":"Secret","metadata":{"labels":{"a/cluster":"c"},"name":"x"}}`, "metadata.labels[a/cluster]", "-:3:30"},
		"merged mapping": {`defaults: &defaults {region: eu01, zone: a}
apiVersion: v1
kind: Secret
metadata: {name: x}
spec:
  <<: *defaults
  zone: b
`, `{"apiVersion":"v1","defaults":{"region":"eu01","zone":"a"},"kind":"Secret","metadata":{"name":"x"},"spec":{"region":"eu01","zone":"b"}}`, "spec.region", "-:1:30"},
		"several merged mappings": {`apiVersion: v1
kind: Secret
metadata: {name: x}
a: &a {one: 1}
b: &b {two: 2}
spec:
  <<: [*a, *b]
`, `{"a":{"one":1},"apiVersion":"v1","b":{"two":2},"kind":"Secret","metadata":{"name":"x"},"spec":{"one":1,"two":2}}`, "spec.two", "-:5:13"},
		"JSON with tabs and escapes": {"{\n\t\"apiVersion\": \"v1\", \"kind\": \"Secret\",\n\t\"metadata\": {\"name\": \"x\"},\n\t\"stringData\": {\"a\": \"\\/\\\\/ \\ud83d\\ude00 \\\"\\u00e4\"}\n}",
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"},"stringData":{"a":"/\\/ 😀 \"ä"}}`, "stringData.a", "-:4:22"},
		"line ends of Windows": {"---\r\n---\r\napiVersion: v1\r\nkind: Secret\r\nmetadata:\r\n  name: x\r\n",
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}`, "metadata.name", "-:6:9"},
		"missing field": {"apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\n",
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}`, "metadata.labels[a].b", "-:4:3"},
	} {
		t.Run(name, func(t *testing.T) {
			manifests, err := ReadText(t, row.text)
			if err != nil || len(manifests) != 1 {
				t.Fatalf("got %d objects, %v", len(manifests), err)
			}
			if got := string(manifests[0].JSON); got != row.json {
				t.Errorf("got %s\nwant %s", got, row.json)
			}
			if got := manifests[0].Position(row.path).String(); got != row.position {
				t.Errorf("%s is at %s, want %s", row.path, got, row.position)
			}
		})
	}
}

func TestManifestThatCannotBeRead(t *testing.T) {
	bomb := "apiVersion: v1\nkind: Secret\na: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i, last := 0, "a"; i < 8; i++ {
		next := string(rune('b' + i))
		bomb += next + ": &" + next + " [" + strings.Repeat("*"+last+", ", 9) + "*" + last + "]\n"
		last = next
	}
	for name, row := range map[string]struct{ text, says string }{
		"alias in its anchor":  {"apiVersion: v1\nkind: Secret\nmetadata: &m\n  x: *m\n", "-:1:1: an alias is inside of its own anchor"},
		"aliases without end":  {bomb, "-:1:1: its aliases stand for too much"},
		"key that is twice":    {"apiVersion: v1\nkind: Secret\nkind: Secret\n", "-:3:1: this key is there twice"},
		"no YAML":              {"x: y\na: b: c", "-:2:1: is not YAML: "},
		"tab":                  {"a:\n\tb: c\n", "-:2:1: has a tab where YAML wants spaces"},
		"tab after spaces":     {"a:\n  b: c\n  \td: e\n", "-:3:3: has a tab where YAML wants spaces"},
		"no tab":               {"a:\tb\n@c: d\n", "-:2:1: is not YAML: found character that cannot start any token"},
		"template's value":     {"apiVersion: v1\nkind: {{ .Values.kind }}\n", "-:2:7: is a template ({{ }}), not YAML: render it first"},
		"template's key":       {"apiVersion: v1\nkind: Secret\n{{ .Values.key }}: x\n", "-:3:1: is a template"},
		"template in a text":   {"apiVersion: v1\nmetadata:\n  name: {{ .Values.name }}-x\n  labels: {}\n", "-:3:9: is a template"},
		"template's line":      {"apiVersion: v1\nkind: Secret\n{{- if .Values.x }}\nmetadata: {}\n{{ end }}\n", "-:3:1: is a template"},
		"userData's template":  {"apiVersion: v1\nuserData: |\n  {{ v1.hostname }}\nkind: a: b\n", "-:4:1: is not YAML"},
		"text":                 {"hello", "-:1:1: is no object"},
		"list of objects":      {"- kind: Secret", "-:1:1: is no object"},
		"no kind":              {"apiVersion: v1\n", "-:1:1: is no object"},
		"name that is no text": {"apiVersion: v1\nkind: Secret\nmetadata: {name: [x]}\n", "-:1:1: is no object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadText(t, row.text)
			var wrong *Error
			if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), row.says) {
				t.Errorf("got %v, want %q", err, row.says)
			}
		})
	}
}

func TestManifestsOfFilesWithoutObjects(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "comment": "# nothing\n", "empty documents": "---\n---\n", "null": "null\n",
		"empty list": "apiVersion: v1\nkind: List\nitems: []\n", "list of null": "apiVersion: v1\nkind: List\nitems: [null]\n",
		"null list": "apiVersion: v1\nkind: List\nitems: null\n",
	} {
		t.Run(name, func(t *testing.T) {
			if manifests, err := ReadText(t, text); err != nil || len(manifests) != 0 {
				t.Errorf("got %d objects, %v", len(manifests), err)
			}
		})
	}
}

func TestManifestsOfAFolder(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"b.yml": "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\n", "a.json": `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`,
		"README.md": "no manifest",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	manifests, _, err := Read(t.Context(), []string{folder}, nil, "default")
	if err != nil || len(manifests) != 2 || manifests[0].Name != "a" || manifests[1].Name != "b" {
		t.Errorf("got %v, %v", manifests, err)
	}
	if _, _, err := Read(t.Context(), []string{t.TempDir()}, nil, "default"); err == nil {
		t.Error("a folder without manifests must be an error")
	}
	if _, _, err := Read(t.Context(), []string{filepath.Join(folder, "missing.yaml")}, nil, "default"); err == nil {
		t.Error("a missing file must be an error")
	}
}
