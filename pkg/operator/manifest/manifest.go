// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads the user's files as objects, with the position of each field, and
// decodes them so that every field that is wrong is named.
package manifest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// Manifest is one object of a file.
type Manifest struct {
	Kind      schema.GroupVersionKind
	Namespace string
	Name      string
	// JSON is the object's. It may hold secrets.
	JSON []byte

	File string
	node *yaml.Node
}

// Stdin is the name by which Read reads the standard input.
const Stdin = "-"

// Read reads YAML and JSON files, of which each may hold several objects and Lists
// of them. A path is a file, a folder, of which the .yaml, .yml and .json files are read, or
// Stdin. Objects without a namespace get the given one. A file that is broken is read up to
// there, and broken says where and why; the error is about a file that cannot be read at all,
// or not before ctx ends.
func Read(ctx context.Context, paths []string, stdin io.Reader, namespace string) (all []*Manifest, broken []*Error, err error) {
	for _, path := range paths {
		files, err := manifestFiles(path)
		if err != nil {
			return nil, nil, err
		}
		for _, file := range files {
			found, err := readManifests(ctx, file, stdin, namespace)
			var wrong *Error
			if errors.As(err, &wrong) {
				broken = append(broken, wrong)
			} else if err != nil {
				return nil, nil, err
			}
			all = append(all, found...)
		}
	}
	return all, broken, nil
}

func manifestFiles(path string) ([]string, error) {
	if path == Stdin {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: the folder has no .yaml, .yml or .json file", path)
	}
	return files, nil
}

// ReadFile reads a file, but not for longer than ctx lasts: a pipe may have no writer.
func ReadFile(ctx context.Context, path string) ([]byte, error) {
	return readUntil(ctx, path, func() ([]byte, error) { return os.ReadFile(filepath.Clean(path)) })
}

// readUntil returns what read returns, or an error when ctx ends. Reading goes on then in
// the background: nothing ends it but its writer or the process.
func readUntil(ctx context.Context, path string, read func() ([]byte, error)) (content []byte, err error) {
	done := make(chan struct{})
	var got []byte
	var failed error
	go func() {
		got, failed = read()
		close(done)
	}()
	select {
	case <-done:
		return got, failed
	case <-ctx.Done():
		return nil, fmt.Errorf("reading %s: interrupted", path)
	}
}

func readManifests(ctx context.Context, path string, stdin io.Reader, namespace string) ([]*Manifest, error) {
	var content []byte
	var err error
	if path == Stdin {
		content, err = readUntil(ctx, "standard input", func() ([]byte, error) { return io.ReadAll(stdin) })
	} else {
		content, err = ReadFile(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	var all []*Manifest
	content = jsonAsYAML(content)
	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, notYAML(path, content, err)
		}
		found, err := manifestsOf(path, document.Content[0], namespace)
		if err != nil {
			return all, err
		}
		all = append(all, found...)
	}
}

// manifestsOf returns the objects of a document: one, those of a List, or none of an empty
// document.
func manifestsOf(file string, node *yaml.Node, namespace string) ([]*Manifest, error) {
	if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		return nil, nil
	}
	at := report.Position{File: file, Line: node.Line, Column: node.Column}
	if node.Kind != yaml.MappingNode {
		return nil, &Error{at, "is no object: must have apiVersion and kind"}
	}
	if twice := duplicateKey(file, node); twice != nil {
		return nil, &Error{*twice, "this key is there twice; leave one out"}
	}
	plain, err := withoutAliases(node)
	if err != nil {
		return nil, &Error{at, err.Error()}
	}
	json, err := asJSON(plain)
	if err != nil {
		return nil, notJSON(file, plain)
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct{ Name, Namespace string }
	}
	if err := sigsyaml.Unmarshal(json, &head); err != nil || head.APIVersion == "" || head.Kind == "" {
		return nil, &Error{at, "is no object: must have apiVersion and kind, and metadata with name and namespace as text"}
	}
	if items := child(node, "items"); strings.HasSuffix(head.Kind, "List") && items != nil {
		return manifestsOfItems(file, target(items), namespace)
	}
	return []*Manifest{{
		Kind: schema.FromAPIVersionAndKind(head.APIVersion, head.Kind), Namespace: cmp.Or(head.Metadata.Namespace, namespace),
		Name: head.Metadata.Name, JSON: json, File: file, node: node,
	}}, nil
}

func manifestsOfItems(file string, items *yaml.Node, namespace string) ([]*Manifest, error) {
	if items.Kind != yaml.SequenceNode && items.Tag != "!!null" {
		return nil, &Error{report.Position{File: file, Line: items.Line, Column: items.Column}, "items is no list: must be a list of objects"}
	}
	var all []*Manifest
	for _, item := range items.Content {
		found, err := manifestsOf(file, target(item), namespace)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// duplicateKey returns the second of two equal keys.
func duplicateKey(file string, node *yaml.Node) *report.Position {
	seen := map[string]bool{}
	for i, content := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			if seen[content.Value] {
				return &report.Position{File: file, Line: content.Line, Column: content.Column}
			}
			seen[content.Value] = true
		}
		if found := duplicateKey(file, content); found != nil {
			return found
		}
	}
	return nil
}

// Position returns where a field stands, or, if it is missing, the object that should have
// it. The path has the form of package field: providerSpec.labels[a/b].
func (m *Manifest) Position(path string) *report.Position {
	at, _ := m.find(pathNames(path))
	return &report.Position{File: m.File, Line: at.Line, Column: at.Column}
}

// pathNames splits a path into names and indexes: a.b[c.d][0] into a, b, c.d, 0.
func pathNames(path string) []string {
	var names []string
	for path != "" {
		end := strings.IndexAny(path, ".[")
		if path[0] == '[' {
			end = strings.IndexByte(path, ']')
			if end < 0 {
				return append(names, path[1:])
			}
			names, path = append(names, path[1:end]), strings.TrimPrefix(path[end+1:], ".")
			continue
		}
		if end < 0 {
			return append(names, path)
		}
		names, path = append(names, path[:end]), strings.TrimPrefix(path[end:], ".")
	}
	return names
}

// find follows names into the object, as far as they are there.
func (m *Manifest) find(names []string) (at *yaml.Node, all bool) {
	at = m.node
	for _, name := range names {
		next := child(target(at), name)
		if next == nil {
			return at, false
		}
		at = next
	}
	return at, true
}
