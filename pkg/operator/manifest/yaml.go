// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// Error says that the content of a file is no manifest.
type Error struct {
	// Position is where; its line is 0 if it is not known.
	Position report.Position
	// Text says what is wrong and what is right.
	Text string
}

func (e *Error) Error() string { return e.Position.String() + ": " + e.Text }

var (
	// yamlError matches the reader's errors; those about the first line do not name it.
	yamlError     = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
	// unreadable matches what YAML cannot have: control characters but for tabs and line
	// ends, and bytes that are not UTF-8.
	unreadable = regexp.MustCompile(`[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x{fffd}]`)
	// tabIndent matches the beginning of a line that is indented with a tab; tabError the
	// reader's errors about one.
	tabIndent = regexp.MustCompile(`^( *(?:- *)*)\t`)
	tabError  = regexp.MustCompile(`\btab\b|cannot start any token`)
	// action matches a line that begins with an action of a template, or whose value does.
	action = regexp.MustCompile(`^(\s*(?:- +)*(?:[^\s#"'{][^#"'{]*:\s+)?)\{\{`)
)

const (
	hasTab     = "has a tab where YAML wants spaces"
	isTemplate = "is a template ({{ }}), not YAML: render it first, and check what comes of it"
)

// notYAML is the reader's error as an Error.
func notYAML(file string, content []byte, err error) *Error {
	wrong := &Error{report.Position{File: file, Line: 1, Column: 1}, err.Error()}
	if found := yamlError.FindStringSubmatch(wrong.Text); found != nil {
		wrong.Text = found[2]
		if line, err := strconv.Atoi(found[1]); err == nil {
			wrong.Position.Line = line
		}
	}
	if nearby(wrong, content, tabIndent) && tabError.MatchString(wrong.Text) {
		wrong.Text = hasTab
		return wrong
	}
	if nearby(wrong, content, action) {
		wrong.Text = isTemplate
		return wrong
	}
	at := -1
	if anchor := unknownAnchor.FindStringSubmatch(wrong.Text); anchor != nil { // it may be a secret
		wrong.Text = "a text that begins with * is an alias, and has no anchor; put it in quotes"
		at = bytes.Index(content, []byte("*"+anchor[1]))
	} else if found := unreadable.FindIndex(content); found != nil {
		at = found[0]
	}
	if at >= 0 {
		before := content[:at]
		wrong.Position.Line, wrong.Position.Column = 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n')
	}
	wrong.Text = "is not YAML: " + wrong.Text
	return wrong
}

// nearby looks for what a line begins with, in the error's line and the next: the reader often
// names the one before. If it finds it, the error is behind
// what the pattern's group matches.
func nearby(wrong *Error, content []byte, pattern *regexp.Regexp) bool {
	lines := bytes.Split(content, []byte("\n"))
	for line := wrong.Position.Line; line <= wrong.Position.Line+1 && line <= len(lines); line++ {
		if found := pattern.FindSubmatch(lines[line-1]); found != nil {
			wrong.Position.Line, wrong.Position.Column = line, len(found[1])+1
			return true
		}
	}
	return false
}

// asJSON converts a node without aliases.
func asJSON(node *yaml.Node) ([]byte, error) {
	text, err := yaml.Marshal(node)
	if err != nil {
		return nil, err
	}
	return sigsyaml.YAMLToJSON(text)
}

// notJSON says which part of an object JSON does not have. The converter's error counts
// lines of a copy.
func notJSON(file string, object *yaml.Node) *Error {
	part, text := partThatIsNotJSON(object)
	if part == nil {
		part, text = object, "this object cannot be read as JSON"
	}
	return &Error{report.Position{File: file, Line: part.Line, Column: part.Column}, text}
}

// partThatIsNotJSON returns the first key or value that JSON does not have; nil if it finds
// none. It looks at each by itself: an object may be deep.
func partThatIsNotJSON(node *yaml.Node) (part *yaml.Node, text string) {
	if isAction(node) {
		return node, isTemplate
	}
	if node.Kind == yaml.ScalarNode {
		if _, err := asJSON(node); err != nil {
			return node, "cannot be read: must be what its tag says, and not .inf or .nan; put a text in quotes"
		}
	}
	for i, content := range node.Content {
		if isKey := node.Kind == yaml.MappingNode && i%2 == 0; isKey {
			if isAction(content) {
				return content, isTemplate
			}
			if content.Kind != yaml.ScalarNode {
				return content, "this key cannot be read: must be a text"
			}
			if content.Tag == "!!merge" && node.Content[i+1].Kind == yaml.ScalarNode {
				return content, "this key merges a mapping, and its value is none; put it in quotes if it is a text"
			}
		}
		if part, text = partThatIsNotJSON(content); part != nil {
			return part, text
		}
	}
	return nil, ""
}

// isAction says whether a node is an action of a template, which YAML takes for a mapping
// whose key is a mapping.
func isAction(node *yaml.Node) bool {
	isFlow := func(node *yaml.Node) bool { return node.Kind == yaml.MappingNode && node.Style&yaml.FlowStyle != 0 }
	if !isFlow(node) || len(node.Content) == 0 || !isFlow(node.Content[0]) {
		return false
	}
	key := node.Content[0]
	return key.Line == node.Line && key.Column == node.Column+1
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

// child returns the value of a mapping's key, or of a sequence's index; nil if there is none.
// A mapping has the keys that it merges in (<<), too.
func child(node *yaml.Node, name string) *yaml.Node {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				return node.Content[i+1]
			}
		}
		return mergedChild(node, name)
	case yaml.SequenceNode:
		for i, item := range node.Content {
			if fmt.Sprint(i) == name {
				return item
			}
		}
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode: // they have no named children
	}
	return nil
}
