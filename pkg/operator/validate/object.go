// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// Kinds of the objects that are checked.
const (
	kindClass      = "MachineClass"
	kindMachine    = "Machine"
	kindDeployment = "MachineDeployment"
	kindSecret     = "Secret"
)

// object is an object to check.
type object struct {
	kind, namespace, name string
	value                 client.Object
	// problems are the errors of decoding; partial means that decoding stopped early.
	problems []problem
	partial  bool
	// used means that a class uses this Secret.
	used bool
	// file, lines and node are the object's position: lines is the number of lines before its document. node is nil for a
	// Secret read from a cluster.
	file  string
	lines int
	node  *yaml.Node
}

// problem is an error at a field.
type problem struct{ path, text string }

func (o *object) subject() string {
	return report.OneLine(fmt.Sprintf("%s %s/%s", o.kind, o.namespace, o.name))
}

func (o *object) key() client.ObjectKey {
	return client.ObjectKey{Namespace: o.namespace, Name: o.name}
}

// position returns the position of a field, or of its closest parent in the file. The path has the form of package
// field.
func (o *object) position(path string) report.Position {
	if o.node == nil {
		return report.Position{}
	}
	at, found := find(o.node, pathNames(path), isSame)
	if !found { // the path may have a key in another case
		at, _ = find(o.node, pathNames(path), strings.EqualFold)
	}
	return report.Position{File: o.file, Line: o.lines + at.Line, Column: at.Column}
}

// has reports whether an object of a file has the field at the path names.
func (o *object) has(names ...string) bool {
	if o.node == nil {
		return false
	}
	_, found := find(o.node, names, isSame)
	return found
}

// wrong reports a problem at a line and column of the document.
func (r *document) wrong(verdict report.Verdict, line, column int, found string) {
	r.add(report.Finding{
		Verdict: verdict, Position: report.Position{File: r.source.name, Line: r.lines + line, Column: column},
		Subject: "manifest", Found: found,
	})
}

// read decodes the whole document. It may hold more YAML documents than the separators show: YAML has other line ends,
// such as those of UTF-16.
func (r *document) read() {
	var documents []*yaml.Node
	for decoder := yaml.NewDecoder(bytes.NewReader(r.text)); ; {
		document := &yaml.Node{}
		err := decoder.Decode(document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			line, found := notYAML(err)
			r.wrong(report.Wrong, line, 1, found)
			break
		}
		documents = append(documents, document)
	}
	for _, document := range documents {
		text := r.text
		if len(documents) > 1 { // re-encoded by the library, close to the original
			text, _ = yaml.Marshal(document)
		}
		r.readOne(document, text)
	}
}

func (r *document) readOne(document *yaml.Node, text []byte) {
	root := document.Content[0]
	if twice := duplicate(root); twice != nil {
		r.wrong(report.Wrong, twice.Line, twice.Column, "this key is set twice; remove one")
		return
	}
	object, err := sigsyaml.YAMLToJSON(text)
	if err != nil { // the error may repeat a value
		r.wrong(report.Wrong, root.Line, root.Column,
			"cannot be read as JSON: must have string keys, and no .inf or .nan; a template must be rendered first")
		return
	}
	r.take(root, object)
}

// take adds the objects of a value: one, the items of a List, or none for null.
func (r *document) take(node *yaml.Node, value json.RawMessage) {
	node = target(node)
	var content any
	if json.Unmarshal(value, &content) == nil && content == nil {
		return
	}
	fields, _ := content.(map[string]any)
	textOf := func(names ...string) string {
		text, _, _ := unstructured.NestedString(fields, names...) // decode reports non-strings
		return text
	}
	apiVersion, kind := textOf("apiVersion"), textOf("kind")
	if apiVersion == "" || kind == "" {
		const found = "lacks apiVersion or kind"
		if r.source.itself {
			r.wrong(report.Wrong, node.Line, node.Column, found+": must be a Kubernetes object")
		} else {
			r.wrong(report.Hint, node.Line, node.Column, found+": skipped")
		}
		return
	}
	if items := child(node, "items", isSame); strings.HasSuffix(kind, "List") && items != nil {
		r.takeItems(target(items), value, apiVersion, strings.TrimSuffix(kind, "List"))
		return
	}
	given := &object{
		kind: kind, namespace: textOf("metadata", "namespace"), name: textOf("metadata", "name"),
		file: r.source.name, lines: r.lines, node: node,
	}
	if given.namespace == "" {
		given.namespace = r.Namespace
	}
	r.takeObject(given, schema.FromAPIVersionAndKind(apiVersion, kind), value)
}

// takeItems adds the items of a List. The API server leaves apiVersion and kind out of the items of a typed list, such
// as a SecretList (kubectl get --raw). Like kubectl, it takes them from the list; kind is "" for a List of any kinds.
func (r *document) takeItems(items *yaml.Node, list json.RawMessage, apiVersion, kind string) {
	var values struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(list, &values); err != nil || len(values.Items) != len(items.Content) {
		r.wrong(report.Wrong, items.Line, items.Column, "items is not a list: must be a list of objects")
		return
	}
	for i, item := range items.Content {
		value := values.Items[i]
		var fields map[string]json.RawMessage
		_ = json.Unmarshal(value, &fields) // take reports an item that is no object
		if kind != "" && fields != nil && fields["kind"] == nil {
			fields["apiVersion"], fields["kind"] = quoted(apiVersion), quoted(kind)
			value, _ = json.Marshal(fields)
		}
		r.take(item, value)
	}
}

func quoted(text string) json.RawMessage {
	quoted, _ := json.Marshal(text)
	return quoted
}

// machineKinds are the kinds of the manager's API group.
var machineKinds = []string{kindClass, kindMachine, kindDeployment, "MachineSet"}

func (r *document) takeObject(given *object, kind schema.GroupVersionKind, value json.RawMessage) {
	switch kind {
	case corev1.SchemeGroupVersion.WithKind(kindSecret):
		if isEncrypted(value) {
			r.result.NotChecked["Secret encrypted by SOPS (v1)"]++
			return
		}
		given.value = &corev1.Secret{}
	case v1alpha1.SchemeGroupVersion.WithKind(kindClass):
		given.value = &v1alpha1.MachineClass{}
	case v1alpha1.SchemeGroupVersion.WithKind(kindMachine):
		given.value = &v1alpha1.Machine{}
	case v1alpha1.SchemeGroupVersion.WithKind(kindDeployment):
		given.value = &v1alpha1.MachineDeployment{}
	default:
		group, isManagers := v1alpha1.SchemeGroupVersion, slices.Contains(machineKinds, kind.Kind)
		switch {
		case kind.Group == group.Group && kind.Version != group.Version,
			kind.Group == "" && isManagers: // an apiVersion of one part only
			unsupported := field.NotSupported(nil, kind.GroupVersion().String(), []string{group.String()})
			r.report(given, report.Wrong, "apiVersion", body(unsupported))
		case kind.Group == group.Group && !isManagers:
			r.report(given, report.Wrong, "kind", body(field.NotSupported(nil, kind.Kind, machineKinds)))
		default:
			r.result.NotChecked[report.OneLine(fmt.Sprintf("%s (%s)", kind.Kind, kind.GroupVersion()))]++
		}
		return
	}
	var whole bool
	given.problems, whole = decode(value, given.value)
	given.partial = !whole
	// A newer manager may have more status fields.
	given.problems = slices.DeleteFunc(given.problems, func(found problem) bool {
		return strings.HasPrefix(found.path, "status.")
	})
	given.problems = append(given.problems, wrongNames(given)...)
	if secret, ok := given.value.(*corev1.Secret); ok {
		mergeStringData(secret)
	}
	given.value.SetNamespace(given.namespace)
	if earlier := r.find(given.kind, given.key()); earlier != nil && given.name != "" { // else the names are generated
		given.problems = append(given.problems, problem{
			"metadata.name", fmt.Sprintf("is defined twice, first at %v; remove one",
				earlier.position("metadata.name")),
		})
	}
	r.objects = append(r.objects, given)
}

// wrongNames returns the problems of an object's name, which the driver reports of a class without one.
func wrongNames(given *object) []problem {
	generated := given.value.GetGenerateName()
	isReported := slices.ContainsFunc(given.problems, func(found problem) bool { return found.path == "metadata.name" })
	if given.name == "" && generated == "" && given.kind != kindClass && !isReported {
		return []problem{{"metadata.name", "Required value: set it, or generateName"}}
	}
	return append(wrongName("metadata.name", given.name, false), wrongName("metadata.generateName", generated, true)...)
}

// wrongName returns the problems of a name, or of the prefix of one, that the API server refuses for Secrets and custom
// resources.
func wrongName(path, name string, isPrefix bool) []problem {
	var problems []problem
	if name != "" {
		for _, text := range apivalidation.NameIsDNSSubdomain(name, isPrefix) {
			problems = append(problems, problem{path, body(field.Invalid(nil, name, text))})
		}
	}
	return problems
}

// isEncrypted reports whether SOPS has encrypted a Secret. It adds its own block to the object, which no API server
// accepts, and keeps the form of the values: to this program the Secret is missing, as the Secret of a SealedSecret is.
func isEncrypted(value json.RawMessage) bool {
	var secret struct {
		Sops             map[string]any
		Data, StringData map[string]any
	}
	_ = json.Unmarshal(value, &secret) // decode reports errors
	isCipher := func(value any) bool {
		text, _ := value.(string)
		return strings.HasPrefix(text, "ENC[AES256_GCM,")
	}
	all := slices.AppendSeq(slices.Collect(maps.Values(secret.Data)), maps.Values(secret.StringData))
	return secret.Sops != nil || slices.ContainsFunc(all, isCipher)
}

// mergeStringData merges stringData into data, as the API server does.
func mergeStringData(secret *corev1.Secret) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
}

// decode decodes an object. It returns unknown fields and the first part that has the wrong type. whole is false if a
// part cannot be decoded at all, such as a quantity: the parts after it are missing then.
func decode(value []byte, into client.Object) (problems []problem, whole bool) {
	unknown, wrong := apis.Decode(value, into, nil)
	problems = unknownFields("", unknown)
	if len(wrong) == 0 {
		return problems, true
	}
	var all any
	_ = json.Unmarshal(value, &all) // drops numbers that are too large
	path := locate(all, nil, func(part any) bool {
		text, err := json.Marshal(part)
		_, wrong := apis.Decode(text, into.DeepCopyObject(), nil)
		return err != nil || len(wrong) > 0
	})
	if path == nil {
		return []problem{{"", body(wrong[0])}}, false
	}
	return append(problems, problem{path.String(), body(wrong[0])}), wrong[0].Field != (*field.Path)(nil).String()
}

// locate returns the path of the first part that is wrong on its own, as deep as possible. wrong reports whether an
// object is wrong that contains only the value at the path.
func locate(value any, path *field.Path, wrong func(any) bool) *field.Path {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			alone := func(part any) bool { return wrong(map[string]any{key: part}) }
			if alone(value[key]) && !wrong(map[string]any{}) {
				return locate(value[key], childPath(path, key), alone)
			}
		}
	case []any:
		for i, item := range value {
			alone := func(part any) bool { return wrong([]any{part}) }
			if alone(item) && !wrong([]any{}) {
				return locate(item, path.Index(i), alone)
			}
		}
	}
	return path
}

// childPath appends the key of an object to a path: a.b, or a[c/d] if the key is not a plain name.
func childPath(path *field.Path, key string) *field.Path {
	if plainName.MatchString(key) {
		return path.Child(key)
	}
	return path.Key(key)
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]*$`)

// unknownFields returns a problem for each unknown field in the errors of package apis.
func unknownFields(prefix string, errs []error) []problem {
	var problems []problem
	for _, err := range errs {
		var at kjson.FieldError
		if errors.As(err, &at) {
			problems = append(problems, problem{prefix + at.FieldPath(), "is not a known field"})
		}
	}
	return problems
}

// yamlError matches errors of the YAML reader; for the first line, they have no line number.
var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// notYAML returns the line and the reason why a text is not YAML.
func notYAML(err error) (line int, found string) {
	line, found = 1, err.Error()
	if parts := yamlError.FindStringSubmatch(found); parts != nil {
		found = parts[2]
		if named, err := strconv.Atoi(parts[1]); err == nil {
			line = named
		}
	}
	if strings.HasPrefix(found, "unknown anchor") { // its name may be a secret
		found = "a value that begins with * is an alias, and its anchor is missing; quote it"
	}
	return line, "is not YAML: " + found + "; a template must be rendered first"
}

// duplicate returns the second of two equal keys; nil if there are none. Several keys may merge (<<). The strict
// decoder of sigs.k8s.io/yaml also reports a key that overrides a merged one.
func duplicate(node *yaml.Node) *yaml.Node {
	seen := map[string]bool{}
	for i, content := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			if seen[content.Value] && content.Kind == yaml.ScalarNode {
				return content
			}
			seen[content.Value] = content.ShortTag() != "!!merge"
		}
		if found := duplicate(content); found != nil {
			return found
		}
	}
	return nil
}

// pathPart matches a name in a path, or a key or index in brackets.
var pathPart = regexp.MustCompile(`\[[^]]*\]|[^.[]+`)

// pathNames splits a path into names and indexes: a.b[c.d][0] into a, b, c.d, 0.
func pathNames(path string) []string {
	names := pathPart.FindAllString(path, -1)
	for i := range names {
		names[i] = strings.Trim(names[i], "[]")
	}
	return names
}

// find follows names into a node as far as they exist. all reports whether it found all of them.
func find(node *yaml.Node, names []string, isName func(key, name string) bool) (at *yaml.Node, all bool) {
	at = node
	for _, name := range names {
		next := child(target(at), name, isName)
		if next == nil {
			return at, false
		}
		at = next
	}
	return at, true
}

// target follows an alias to its anchor.
func target(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func isSame(key, name string) bool { return key == name }

// child returns the value of a mapping's key or of a sequence's index; nil if there is none, or if it is merged in
// (<<).
func child(node *yaml.Node, name string, isName func(key, name string) bool) *yaml.Node {
	if node.Kind == yaml.SequenceNode {
		if index, err := strconv.Atoi(name); err == nil && index >= 0 && index < len(node.Content) {
			return node.Content[index]
		}
	}
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if isName(node.Content[i].Value, name) {
			return node.Content[i+1]
		}
	}
	return nil
}
