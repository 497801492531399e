// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf16"

	"k8s.io/cli-runtime/pkg/resource"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

const (
	secretOf = "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"
	badClass = "apiVersion: machine.sapcloud.io/v1alpha1\nkind: MachineClass\nmetadata: {name: bad}\n" +
		"provider: aws\nproviderSpec: {}\n"

	nothingToCheck = "manifests: there is no MachineClass, Machine or MachineDeployment to check"
)

// A text is told apart into documents, each of which is read or said to be wrong.
// inUTF16 is a text as PowerShell's > writes it.
func inUTF16(text string) []byte {
	encoded := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		encoded = append(encoded, byte(unit), byte(unit>>8))
	}
	return encoded
}

func TestDocuments(t *testing.T) {
	bomb := secretOf + "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i, last := 0, "a"; i < 8; i++ {
		next := string(rune('b' + i))
		bomb += next + ": &" + next + " [" + strings.Repeat("*"+last+", ", 9) + "*" + last + "]\n"
		last = next
	}
	for name, row := range map[string]struct {
		text string
		code int
		says string
	}{
		"each document by itself": {"a: [\n---\n" + badClass + "---\nb: {\n",
			1, "-:6:11: MachineClass default/bad: provider: Unsupported value: \"aws\""},
		"the first of them":            {"a: [\n---\n" + badClass + "---\nb: {\n", 1, "-:1:1: manifest: is not YAML: "},
		"the last of them":             {"a: [\n---\n" + badClass + "---\nb: {\n", 1, "-:9:1: manifest: is not YAML: "},
		"behind the end of a document": {secretOf + "...\n" + badClass, 1, "-:8:11: MachineClass default/bad"},
		"object on the separator": {
			"--- " + strings.ReplaceAll(`{apiVersion: machine.sapcloud.io/v1, kind: MachineClass}`, "\n", ""),
			1, "-:1:18: MachineClass default/: apiVersion: Unsupported value"},
		"Windows line endings": {"---\r\n" + strings.ReplaceAll(badClass, "\n", "\r\n"),
			1, "-:5:11: MachineClass default/bad: provider"},
		"JSON objects one behind the other": {`{"apiVersion":"v1","kind":"ConfigMap"} ` + "\n" +
			`{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineClass","metadata":{"name":"bad"},"provider":"aws"}` +
			"\n",
			1, "-:2:105: MachineClass default/bad: provider"},
		"a block that begins with a blank line": {
			"apiVersion: v1\nkind: ConfigMap\ndata:\n  args:\n  - |\n\n    set -e\n---\n" + badClass,
			1, "-:12:11: MachineClass default/bad: provider"},
		"a byte behind JSON": {`{"apiVersion":"v1","kind":"ConfigMap"}]`, 1, "manifest: is not YAML"},
		"YAML behind JSON": {`{"apiVersion":"v1","kind":"ConfigMap"}` + "\n---\n" + badClass, 1,
			"-:6:11: MachineClass default/bad: provider"},
		"UTF-16": {string(inUTF16("---\n" + secretOf + "---\n" + badClass)), 1,
			"MachineClass default/bad: provider"},
		"a byte order mark before each document": {"\ufeff" + secretOf + "---\n\ufeff" + badClass, 1,
			"-:8:11: MachineClass default/bad: provider"},
		"line ends of CR alone": {strings.ReplaceAll(secretOf+"---\n"+badClass, "\n", "\r"), 1,
			"MachineClass default/bad: provider"},
		"line ends of U+0085": {strings.ReplaceAll(secretOf+"---\n"+badClass, "\n", "\u0085"), 1,
			"MachineClass default/bad: provider"},
		"line ends of U+2028": {strings.ReplaceAll(secretOf+"---\n"+badClass, "\n", "\u2028"), 1,
			"MachineClass default/bad: provider"},
		"broken behind odd line ends": {strings.ReplaceAll(secretOf+"---\na: [", "\n", "\r"), 1, "manifest: is not YAML"},
		"key that is twice": {secretOf + "kind: Secret\n",
			1, "-:4:1: manifest: this key is set twice; remove one"},
		"key that is twice, deep": {badClass + "a: [{b: 1, b: 2}]\n", 1, "-:6:12: manifest: this key is set twice"},
		"key that is twice, in JSON": {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","name":"y"}}`,
			1, "-:1:59: manifest: this key is set twice"},
		"key that overrides a merged": {
			"d: &d {provider: a}\n" + strings.Replace(badClass, "metadata: {name: bad}", "metadata: {name: bad}\n<<: *d", 1),
			1, `-:6:11: MachineClass default/bad: provider: Unsupported value: "aws"`},
		"key that is merged in": {"d: &d {provider: aws}\n" + strings.Replace(badClass, "provider: aws", "<<: [*d]", 1),
			1, `-:1:1: MachineClass default/bad: provider: Unsupported value: "aws"`},
		"two keys that merge": {"d: &d {provider: aws}\ne: &e {kind: MachineClass}\n" +
			strings.NewReplacer("provider: aws", "<<: *d", "kind: MachineClass", "<<: *e").Replace(badClass),
			1, `-:1:1: MachineClass default/bad: provider: Unsupported value: "aws"`},
		"anchor outside of an item": {"apiVersion: v1\nkind: List\na: &m {name: bad}\nitems:\n" +
			"- apiVersion: machine.sapcloud.io/v1\n  kind: MachineClass\n  metadata: *m\n",
			1, "-:5:15: MachineClass default/bad: apiVersion"},
		"JSON": {"{\n\t\"apiVersion\": \"machine.sapcloud.io/v1alpha1\", \"kind\": \"MachineClass\",\n" +
			"\t\"metadata\": {\"name\": \"x\"},\n\t\"provider\": \"\\u003cx\"\n}",
			1, `-:4:14: MachineClass default/x: provider: Unsupported value: "<x"`},
		"namespace of an object": {strings.Replace(badClass, "name: bad", "name: bad, namespace: own", 1),
			1, "MachineClass own/bad: provider"},
		"the same object twice": {badClass + "---\n" + badClass,
			1, "-:9:18: MachineClass default/bad: metadata.name: is defined twice, first at -:3:18"},
		"two with generated names": {strings.Repeat("apiVersion: machine.sapcloud.io/v1alpha1\nkind: Machine\n"+
			"metadata: {generateName: a-}\nspec: {class: {kind: MachineClass, name: a}}\n---\n", 2), 2,
			"-:9:42: Machine default/: spec.class.name: MachineClass default/a is not in the files"},
		"no object": {"a: b\n", 1,
			"-:1:1: manifest: lacks apiVersion or kind: must be a Kubernetes object"},
		"text":                        {"hello", 1, "lacks apiVersion or kind"},
		"empty":                       {"# nothing\n---\n---\nnull\n", 2, nothingToCheck},
		"a Secret that no class uses": {secretOf, 2, nothingToCheck},
		"List of nothing":             {"apiVersion: v1\nkind: List\nitems: [null]\n", 2, "there is no MachineClass"},
		"items of a typed List, without their kind": {"apiVersion: machine.sapcloud.io/v1alpha1\nkind: MachineClassList\n" +
			"items:\n- {metadata: {name: bad, generation: 9007199254740993}, provider: aws, providerSpec: {}}\n",
			1, "-:4:67: MachineClass default/bad: provider: Unsupported value"},
		"item of a List without a kind": {"apiVersion: v1\nkind: List\nitems: [{metadata: {name: x}}]\n",
			1, "-:3:9: manifest: lacks apiVersion or kind"},
		"items that are a text": {"apiVersion: v1\nkind: List\nitems: x\n",
			1, "-:3:8: manifest: items is not a list: must be a list of objects"},
		"another kind": {"apiVersion: v1\nkind: ConfigMap\n", 2, "there is no MachineClass"},
		"kind of another group": {"apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineDeployment\n", 2,
			"there is no MachineClass"},
		"version that nobody serves": {strings.Replace(badClass, "v1alpha1", "v2", 1),
			1, `-:1:13: MachineClass default/bad: apiVersion: ` +
				`Unsupported value: "machine.sapcloud.io/v2": supported values: "machine.sapcloud.io/v1alpha1"`},
		"apiVersion without a version": {strings.Replace(badClass, "/v1alpha1", "", 1), 1,
			`-:1:13: MachineClass default/bad: apiVersion: Unsupported value: "machine.sapcloud.io": supported values`},
		"apiVersion without a group": {strings.Replace(badClass, "machine.sapcloud.io/", "", 1), 1,
			`-:1:13: MachineClass default/bad: apiVersion: Unsupported value: "v1alpha1": supported values`},
		"Machine of the core group": {"apiVersion: v1\nkind: Machine\nmetadata: {name: machine}\n", 1,
			`-:1:13: Machine default/machine: apiVersion: Unsupported value: "v1": supported values`},
		"kind that nobody has": {strings.Replace(badClass, "MachineClass", "Machineclass", 1),
			1, `-:2:7: Machineclass default/bad: kind: ` +
				`Unsupported value: "Machineclass": supported values: "MachineClass", "Machine",`},
		"MachineSet": {strings.Replace(badClass, "MachineClass", "MachineSet", 1), 2, "there is no MachineClass"},
		"name that is no text": {"apiVersion: v1\nkind: Secret\nmetadata: {name: [x]}\n",
			1, "-:3:18: Secret default/: metadata.name: Invalid value: json: cannot unmarshal array"},
		"tab": {"a:\n\tb: c\n", 1, "-:2:1: manifest: is not YAML: found character that cannot start any token"},
		"template that is not YAML": {"apiVersion: v1\nkind: Secret\n{{- if .Values.x }}\nmetadata: {}\n{{ end }}\n",
			1, "a template must be rendered first"},
		"template that is YAML": {"apiVersion: v1\nkind: {{ .Values.kind }}\n",
			1, "cannot be read as JSON: must have string keys, and no .inf or .nan; a template must be rendered first"},
		"alias without an anchor": {secretOf + "stringData: {a: *s3cr3t}\n",
			1, "a value that begins with * is an alias, and its anchor is missing"},
		"alias in its anchor": {"apiVersion: v1\nkind: Secret\nmetadata: &m\n  x: *m\n",
			1, "-:1:1: manifest: cannot be read as JSON"},
		"aliases that stand for a lot": {bomb, 1, "manifest: "},
		"control character":            {"apiVersion: \"eu\x01\"", 1, "is not YAML: control characters are not allowed"},
		"Secret with data of no base64": {secretOf + "data: {a: s3cr3t-}\n", 1,
			"-:4:11: Secret default/x: data.a: Invalid value: illegal base64 data"},
	} {
		t.Run(name, func(t *testing.T) {
			result := run(t, offline(), row.text, Options{})
			expect(t, result, row.code, row.says)
			for _, found := range result.Findings {
				if strings.Contains(found.String(), "s3cr3t") {
					t.Errorf("a value is told: %v", found)
				}
			}
		})
	}
}

// folder has a manifest, one in a folder below that is broken, and files without any.
func folder(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": secretOf, "values.yaml": "replicas: 1\n", "README.md": "no manifest", "below/broken.yml": badClass,
		"below/deeper/b.json": "{", "kustomization.yaml": "resources: [a.yaml, below/broken.yml]\n", "empty/x.txt": "",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(root, "below"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestFiles(t *testing.T) {
	t.Chdir(folder(t))
	const (
		passedOver = "values.yaml:1:1: manifest: lacks apiVersion or kind: skipped"
		is         = " MachineClass default/bad: provider: Unsupported value"
	)
	for name, row := range map[string]struct {
		files resource.FilenameOptions
		code  int
		says  []string
	}{
		"folder": {resource.FilenameOptions{Filenames: []string{"."}},
			2, []string{passedOver, "kustomization.yaml:1:1: manifest: lacks apiVersion or kind: skipped"}},
		"folder, with those below": {resource.FilenameOptions{Filenames: []string{"."}, Recursive: true}, 1,
			[]string{passedOver, "below/broken.yml:4:11:" + is, "below/deeper/b.json:1:1: manifest: is not YAML"}},
		"file": {resource.FilenameOptions{Filenames: []string{"./below/broken.yml"}},
			1, []string{"below/broken.yml:4:11:" + is}},
		"link to a folder": {resource.FilenameOptions{Filenames: []string{"link"}},
			1, []string{"link/broken.yml:4:11:" + is}},
		"pattern": {resource.FilenameOptions{Filenames: []string{"be*/*.yml"}},
			1, []string{"below/broken.yml:4:11:" + is}},
		"pattern that matches a folder without any": {resource.FilenameOptions{Filenames: []string{"[be]*"}},
			1, []string{"below/broken.yml:4:11:" + is}},
		"pattern that matches nothing else": {resource.FilenameOptions{Filenames: []string{"empt*"}},
			2, []string{"empt*: manifest: cannot be read: the folder has no file that ends in"}},
		"named itself": {resource.FilenameOptions{Filenames: []string{".", "values.yaml"}},
			1, []string{"values.yaml:1:1: manifest: lacks apiVersion or kind: must be"}},
		"named twice": {resource.FilenameOptions{Filenames: []string{"a.yaml", "./a.yaml", "."}},
			2, []string{passedOver}},
		"kustomize": {resource.FilenameOptions{Kustomize: "."}, 1, []string{"kustomize .:", is}},
		"no kustomization": {resource.FilenameOptions{Kustomize: "below"},
			2, []string{"kustomize below: manifest: cannot be read: "}},
		"not there": {resource.FilenameOptions{Filenames: []string{"nowhere.yaml", "a.yaml"}},
			2, []string{"nowhere.yaml: manifest: cannot be read: no such file or directory"}},
		"folder without any": {resource.FilenameOptions{Filenames: []string{"empty"}},
			2, []string{"empty: manifest: cannot be read: " +
				"the folder has no file that ends in .json, .yaml, .yml; -R includes its subfolders"}},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Run(t.Context(), offline(), Options{Files: row.files})
			if err != nil {
				t.Fatal(err)
			}
			expect(t, result, row.code, row.says...)
		})
	}
}

// A file's name cannot begin a line of its own, such as a command to a CI, nor change a terminal.
func TestFileNamesAreOneLine(t *testing.T) {
	t.Chdir(t.TempDir())
	const name, shown = "a\n::error::\x1b[31m.yaml", "a ::error::?[31m.yaml"
	if err := os.WriteFile(name, []byte(badClass), 0o600); err != nil {
		t.Fatal(err)
	}
	files := resource.FilenameOptions{Filenames: []string{".", "nowhere" + name}}
	result, err := Run(t.Context(), offline(), Options{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, result, 1, shown+":4:11: MachineClass default/bad: provider", "nowhere"+shown+": manifest: cannot be read")
}

// A folder that may not be read does not hide the other matches of a pattern.
func TestPatternWithAnUnreadableFolder(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	t.Chdir(folder(t))
	if err := os.Chmod("below", 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod("below", 0o750) })
	result, err := Run(t.Context(), offline(), Options{Files: resource.FilenameOptions{Filenames: []string{"[abv]*"}}})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, result, 2, "[abv]*: manifest: cannot be read: permission denied", "values.yaml:1:1: manifest: lacks")
}

func TestURLs(t *testing.T) {
	hangs := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/class.yaml":
			_, _ = w.Write([]byte(badClass))
		case "/full.yaml":
			_, _ = w.Write([]byte(secretOf + strings.Repeat("#", maxURL-len(secretOf))))
		case "/large.yaml":
			_, _ = w.Write([]byte(secretOf + strings.Repeat("#", maxURL)))
		case "/hangs.yaml":
			<-hangs
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hangs) })
	for name, row := range map[string]struct {
		url  string
		code int
		says string
	}{
		"class": {"/class.yaml?token=s3cr3t", report.ExitWrong,
			"/class.yaml:4:11: MachineClass default/bad: provider: Unsupported value"},
		"1 MiB": {"/full.yaml", report.ExitUnknown, nothingToCheck},
		"more": {"/large.yaml", report.ExitUnknown,
			"/large.yaml: manifest: cannot be read: larger than the limit of 1 MiB"},
		"no such": {"/nowhere?token=s3cr3t", report.ExitUnknown, "/nowhere: manifest: cannot be read: HTTP status 404"},
		"too late": {"/hangs.yaml?token=s3cr3t", report.ExitUnknown,
			"/hangs.yaml: manifest: cannot be read: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			access, files := offline(), resource.FilenameOptions{Filenames: []string{server.URL + row.url}}
			if name == "too late" {
				access.ReadTimeout = 500 * time.Millisecond
			}
			result, err := Run(t.Context(), access, Options{Files: files})
			if err != nil {
				t.Fatal(err)
			}
			expect(t, result, row.code, row.says)
			for _, found := range result.Findings {
				if strings.Contains(found.String(), "s3cr3t") {
					t.Errorf("the query is told: %v", found)
				}
			}
		})
	}
}

// URLs that differ in their query alone are two.
func TestURLsOfOnePath(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(strings.Replace(badClass, "name: bad", "name: "+r.URL.RawQuery, 1)))
	}))
	t.Cleanup(server.Close)
	urls := []string{server.URL + "/?one", server.URL + "/?two", server.URL + "/?one"}
	result, err := Run(t.Context(), offline(), Options{Files: resource.FilenameOptions{Filenames: urls}})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, result, report.ExitWrong, "MachineClass default/one: provider: Unsupported value",
		"MachineClass default/two: provider: Unsupported value")
	if result.Checked[kindClass] != 2 {
		t.Errorf("checked %v, want two classes", result.Checked)
	}
}

// FuzzRun gives Run any text: it must not panic, and each finding must be one line with a
// place in the text.
func FuzzRun(f *testing.F) {
	for _, pattern := range []string{"../../../samples/*.yaml", "testdata/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			f.Fatalf("%s: %v", pattern, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	for _, spec := range []string{"null", "[]",
		"{labels: null, bootVolume: null, networking: {nicIds: [null]}, metadata: {a: null}}", `{"": 0}`} {
		f.Add("apiVersion: machine.sapcloud.io/v1alpha1\nkind: MachineClass\nmetadata: null\n" +
			"secretRef: null\nnodeTemplate: null\nproviderSpec: " + spec)
	}
	for _, kind := range []string{"Machine", "MachineDeployment"} {
		for _, spec := range []string{"null", "{}", "{class: null, selector: null, template: null, strategy: null}"} {
			f.Add("apiVersion: machine.sapcloud.io/v1alpha1\nkind: " + kind + "\nspec: " + spec)
		}
	}
	f.Add("apiVersion: v1\nkind: Secret\ndata: null\nstringData: {a: null}")
	f.Add("apiVersion: v1\nkind: List\nitems: &a [*a]")
	f.Add("apiVersion: v1\nkind: List\nitems: [null, [], {<<: {kind: Secret, apiVersion: v1}}]\n...\n%YAML 1.1\n--- {}\n")
	f.Fuzz(func(t *testing.T, text string) {
		result, err := Run(t.Context(), offline(),
			Options{Stdin: strings.NewReader(text), Files: resource.FilenameOptions{Filenames: []string{"-"}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range result.Findings {
			if strings.ContainsAny(found.String(), "\n\r\x1b") {
				t.Errorf("more than a line: %q", found)
			}
			if found.Subject != "manifests" && (found.Position.Line < 1 || found.Position.Column < 1) {
				t.Errorf("no position: %q", found)
			}
		}
	})
}

// What kustomize would clone or fetch was read without a limit of time or size.
func TestRemoteResourcesAreRefused(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(server.Close)
	for name, text := range map[string]string{
		"a file":               "resources: [" + server.URL + "/a.yaml]",
		"a repository":         "resources: ['" + server.URL + "/org/repository//folder?ref=v1']",
		"one of GitHub":        "resources: [github.com/org/repository]",
		"one by ssh":           "resources: ['git@127.0.0.1:org/repository']",
		"a base":               "bases: ['ssh://127.0.0.1/org/repository']",
		"a component":          "components: [" + server.URL + "/org/repository]",
		"a patch":              "patches: [{path: " + server.URL + "/a.yaml}]",
		"a file of a Secret":   "secretGenerator: [{name: a, files: [key=" + server.URL + "/a]}]",
		"in a folder below":    "resources: [below]",
		"in a component of it": "components: [../own/below]",
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for path, text := range map[string]string{
				"own/kustomization.yaml": text + "\n", "own/below/kustomization.yml": "resources: [" + server.URL + "/a.yaml]\n",
			} {
				path = filepath.Join(root, path)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			expect(t, kustomizedIn(t, filepath.Join(root, "own")), 2,
				"which is not on this computer: remote resources are not read")
		})
	}
	expect(t, kustomizedIn(t, server.URL+"/org/repository"), 2, "remote resources are not read")
	if asked.Load() > 0 {
		t.Errorf("%d requests", asked.Load())
	}
}

func kustomizedIn(t *testing.T, folder string) *Result {
	t.Helper()
	result, err := Run(t.Context(), offline(), Options{Files: resource.FilenameOptions{Kustomize: folder}})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// The project's own manifests are read as kubectl reads them.
func TestLocalKustomizationsAreRead(t *testing.T) {
	for _, folder := range []string{"../../../kubernetes", "../../../kubernetes/control", "../../../kubernetes/target"} {
		if err := checkLocal(folder, map[string]bool{}); err != nil {
			t.Errorf("%s: %v", folder, err)
		}
	}
}
