// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// stdin is the file name of standard input.
const stdin = "-"

// source is a file, a URL or standard input. Two libraries read its text: kubectl's finds the objects, and yaml.v3
// their lines.
type source struct {
	// name is shown in findings: one line, without a URL's query.
	name string
	// isNamed means that the user named it itself, not its folder.
	isNamed bool
	objects []*yaml.Node
	// problem is an error that kubectl's library passes over, such as a key that is set twice.
	problem error
}

// paths expands the names as kubectl does. It reports names that match nothing.
func (v *validator) paths() (paths []string) {
	for _, name := range v.options.Files.Filenames {
		if name == stdin || isURL(name) {
			paths = append(paths, name)
			continue
		}
		folder := name
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			folder += string(filepath.Separator) // else a link to a folder is taken for a file
		}
		visitors, err := resource.ExpandPathsToFileVisitors(nil, folder, v.options.Files.Recursive,
			resource.FileExtensions, nil)
		if err != nil {
			v.unread(name, err)
		}
		for _, visitor := range visitors {
			if file, ok := visitor.(*resource.FileVisitor); ok {
				paths = append(paths, filepath.Clean(file.Path))
			}
		}
		if err == nil && len(visitors) == 0 {
			v.unread(name, fmt.Errorf("the folder has no file that ends in %s; -R includes its subfolders",
				strings.Join(resource.FileExtensions, ", ")))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// text reads a source as kubectl does, which takes a byte order mark for UTF-16.
func (v *validator) text(ctx context.Context, path string) (text []byte, err error) {
	switch {
	case path == stdin:
		text, err = io.ReadAll(v.options.Stdin)
	case isURL(path):
		text, err = v.fetch(ctx, path)
	default:
		text, err = os.ReadFile(filepath.Clean(path))
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(transform.NewReader(bytes.NewReader(text), unicode.BOMOverride(unicode.UTF8.NewDecoder())))
}

func (v *validator) fetch(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := v.Bounded(ctx)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, name, http.NoBody)
	if err != nil {
		return nil, errors.New("not a valid URL")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %d", response.StatusCode)
	}
	return io.ReadAll(response.Body)
}

// shownName returns a source's name for findings. The query of a URL may be a secret.
func shownName(path string) string {
	if parsed, err := url.Parse(path); err == nil && isURL(path) {
		path = (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: parsed.Path}).String()
	}
	return report.OneLine(path)
}

// unread reports a source that cannot be read.
func (v *validator) unread(path string, err error) {
	var file *os.PathError
	var request *url.Error
	if errors.As(err, &file) { // both repeat the name
		err = file.Err
	} else if errors.As(err, &request) {
		err = request.Err
	}
	v.add(report.Finding{Verdict: report.Unknown, Position: report.Position{File: shownName(path)}, Subject: "manifest",
		Found: "cannot be read: " + report.OneLine(err.Error())})
}

// newSource finds the objects of a text with yaml.v3. Values of JSON may stand one behind the other, as jq prints them.
func newSource(path string, text []byte, isNamed bool) *source {
	s := &source{name: shownName(path), isNamed: isNamed}
	begin := 0
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		values := json.NewDecoder(bytes.NewReader(text))
		for values.Decode(new(json.RawMessage)) == nil {
			end := int(values.InputOffset())
			s.read(text[begin:end], bytes.Count(text[:begin], []byte("\n")))
			begin = end
		}
	}
	s.read(text[begin:], bytes.Count(text[:begin], []byte("\n")))
	return s
}

// read adds the objects of a part of the text that begins behind so many lines.
func (s *source) read(text []byte, lines int) {
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); s.problem == nil; {
		document := &yaml.Node{}
		err := decoder.Decode(document)
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = document.Decode(new(any)) // a key that is set twice
		}
		if s.problem = err; err != nil {
			return
		}
		objects := []*yaml.Node{target(document.Content[0])}
		if items := child(objects[0], "items"); items != nil && items.Kind == yaml.SequenceNode {
			objects = items.Content
		}
		for _, object := range objects {
			if object = target(object); object.ShortTag() != "!!null" {
				shift(object, lines)
				s.objects = append(s.objects, object)
			}
		}
	}
}

// shift moves a node and its parts down by so many lines.
func shift(node *yaml.Node, lines int) {
	node.Line += lines
	for _, part := range node.Content {
		shift(part, lines)
	}
}

// position returns the place of a field or, if that is missing, of its parent, in the object of the subject.
// Without such an object it returns the source's name alone.
func (s *source) position(subject, path string) report.Position {
	kind, name, _ := strings.Cut(subject, " ")
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, at := range s.objects {
		if text(child(at, "kind")) != kind || text(child(child(at, "metadata"), "name")) != name {
			continue
		}
		for _, part := range pathPart.FindAllString(path, -1) {
			part = strings.Trim(part, "[]")
			next := child(at, part)
			for _, data := range []string{"data", "stringData"} {
				if next == nil && kind == kindSecret {
					next = child(child(at, data), part)
				}
			}
			if next == nil {
				break
			}
			at = target(next)
		}
		return report.Position{File: s.name, Line: at.Line, Column: at.Column}
	}
	return report.Position{File: s.name}
}

// pathPart matches a name in a path, or a key or index in brackets.
var pathPart = regexp.MustCompile(`\[[^]]*\]|[^.[]+`)

// target follows an alias to its anchor.
func target(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// child returns the value of a key, or the item of an index; nil if there is none.
func child(node *yaml.Node, name string) *yaml.Node {
	if node == nil {
		return nil
	}
	node = target(node)
	if index, err := strconv.Atoi(name); err == nil && node.Kind == yaml.SequenceNode && index < len(node.Content) {
		return node.Content[index]
	}
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i+1]
		}
	}
	return nil
}

func text(node *yaml.Node) string {
	if node == nil {
		return ""
	}
	return target(node).Value
}
