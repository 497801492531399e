// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"
)

// ManifestError says that the content of a file is no manifest.
type ManifestError struct {
	// Position is where; its line is 0 if it is not known.
	Position Position
	// Text says what is wrong and what is right.
	Text string
}

func (e *ManifestError) Error() string { return e.Position.String() + ": " + e.Text }

// yamlLine matches the line in the reader's errors.
var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

// notYAML is the reader's error as a ManifestError.
func notYAML(file string, err error) *ManifestError {
	wrong := &ManifestError{Position{File: file}, err.Error()}
	if strings.Contains(wrong.Text, "unknown anchor") { // the rest of the text may be a secret
		wrong.Text = "is not YAML: a text that begins with * is an alias, and has no anchor; put it in quotes"
	}
	if found := yamlLine.FindStringSubmatch(wrong.Text); found != nil {
		if line, err := strconv.Atoi(found[1]); err == nil {
			wrong.Position.Line, wrong.Position.Column = line, 1
			wrong.Text = "is not YAML: " + strings.TrimPrefix(wrong.Text, found[0])
		}
	}
	return wrong
}

// maxNodes bounds what the aliases of an object may grow to: a few lines of YAML can stand
// for more than a machine has memory for.
const maxNodes = 100_000

var (
	errAliasInItself  = errors.New("an alias is inside of its own anchor")
	errTooManyAliases = errors.New("its aliases stand for too much")
)

// withoutAliases returns a copy of a node that stands alone: an item of a List may use
// anchors that are outside of the item.
func withoutAliases(node *yaml.Node) (*yaml.Node, error) {
	left, open := maxNodes, map[*yaml.Node]bool{}
	var expand func(*yaml.Node) (*yaml.Node, error)
	expand = func(node *yaml.Node) (*yaml.Node, error) {
		node = target(node)
		if open[node] {
			return nil, errAliasInItself
		}
		if left--; left < 0 {
			return nil, errTooManyAliases
		}
		open[node] = true
		defer delete(open, node)
		plain := *node
		plain.Anchor, plain.Content = "", nil
		for _, content := range node.Content {
			expanded, err := expand(content)
			if err != nil {
				return nil, err
			}
			plain.Content = append(plain.Content, expanded)
		}
		return &plain, nil
	}
	return expand(node)
}

// target follows an alias to its anchor.
func target(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

// mergedChild looks for a key in the mappings that a mapping merges in.
func mergedChild(node *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Tag != "!!merge" {
			continue
		}
		sources := []*yaml.Node{node.Content[i+1]}
		if from := target(sources[0]); from.Kind == yaml.SequenceNode {
			sources = from.Content
		}
		for _, source := range sources {
			if from := target(source); from.Kind == yaml.MappingNode {
				if found := child(from, name); found != nil {
					return found
				}
			}
		}
	}
	return nil
}

// jsonEscape matches an escape in a JSON string, a surrogate pair as one.
var jsonEscape = regexp.MustCompile(`\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|.)`)

// jsonAsYAML replaces the escapes of JSON that the YAML reader does not know, which takes
// JSON for YAML. What is not JSON stays as it is.
func jsonAsYAML(content []byte) []byte {
	if !json.Valid(content) {
		return content
	}
	return jsonEscape.ReplaceAllFunc(content, func(escape []byte) []byte {
		switch {
		case string(escape) == `\/`:
			return []byte("/")
		case len(escape) > 2:
			high, errHigh := strconv.ParseInt(string(escape[2:6]), 16, 32)
			low, errLow := strconv.ParseInt(string(escape[8:12]), 16, 32)
			if errHigh == nil && errLow == nil {
				return fmt.Appendf(nil, `\U%08X`, utf16.DecodeRune(rune(high), rune(low)))
			}
		}
		return escape
	})
}
