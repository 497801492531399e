// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
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
	isBad          = "MachineClass default/bad: provider: Unsupported value: \"aws\""
	nothingToCheck = "manifests: there is no MachineClass, Machine or MachineDeployment to check"
)

// inUTF16 is a text as PowerShell's > writes it.
func inUTF16(text string) []byte {
	encoded := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		encoded = append(encoded, byte(unit), byte(unit>>8))
	}
	return encoded
}

// Each document of a text is read or said to be wrong: nothing is passed over in silence.
func TestDocuments(t *testing.T) {
	lost := strings.ReplaceAll(secretOf+"---\n"+badClass, "\n", "\r")
	for name, row := range map[string]struct {
		text string
		code int
		says string
	}{
		"two":               {secretOf + "---\n" + badClass, 1, "-:8:11: " + isBad},
		"one is none":       {"a: [\n---\n" + badClass, 1, "-: manifest: error parsing"},
		"end of a document": {secretOf + "...\n" + badClass, 1, "-: manifest: "},
		"object on the separator": {"--- {apiVersion: v1, kind: Secret, stringData: {a: s3cr3t}}\n", 1,
			"manifest: error parsing -: invalid Yaml document"},
		"Windows line endings": {"---\r\n" + strings.ReplaceAll(badClass, "\n", "\r\n"), 1, "-:5:11: " + isBad},
		"JSON objects one behind the other": {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}} ` + "\n" +
			`{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineClass","metadata":{"name":"bad"},"provider":"aws"}` +
			"\n", 1, "-:2:105: " + isBad},
		"a byte behind JSON":    {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}]`, 1, "-: manifest: "},
		"YAML behind JSON":      {`{"apiVersion":"v1","kind":"ConfigMap"}` + "\n---\n" + badClass, 1, ""},
		"UTF-16":                {string(inUTF16("---\n" + secretOf + "---\n" + badClass)), 1, isBad},
		"line ends of CR alone": {lost, 1, "-: manifest: kubectl reads 1 of its 2 objects: check line ends"},
		"line ends of U+0085":   {strings.ReplaceAll(lost, "\r", "\u0085"), 1, "manifest: "},
		"key that is twice": {secretOf + "kind: Secret\n", 1,
			"manifest: yaml: unmarshal errors: line 4: mapping key … already"},
		"key that is twice, deep": {badClass + "a: [{b: 1, b: 2}]\n", 1, "line 6: mapping key"},
		"key that is twice, in JSON": {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","name":"y"}}`, 1,
			"mapping key … already defined"},
		"key that is merged in": {"d: &d {provider: aws}\n" + strings.Replace(badClass, "provider: aws", "<<: [*d]", 1),
			1, isBad},
		"namespace of an object": {strings.Replace(badClass, "name: bad", "name: bad, namespace: own", 1), 1,
			"MachineClass own/bad: provider"},
		"the same object twice": {badClass + "---\n" + badClass, 1, "MachineClass default/bad: is defined twice"},
		"no object":             {"a: b\n", 1, "-: manifest: lacks apiVersion or kind: must be a Kubernetes object"},
		"text":                  {"hello", 1, "manifest: "},
		"empty":                 {"# nothing\n---\n---\nnull\n", 2, nothingToCheck},
		"a Secret alone":        {secretOf, 2, nothingToCheck},
		"List of nothing":       {"apiVersion: v1\nkind: List\nitems: [null]\n", 2, nothingToCheck},
		"items of a typed List, without their kind": {"apiVersion: machine.sapcloud.io/v1alpha1\nkind: MachineClassList\n" +
			"items:\n- {metadata: {name: bad, generation: 9007199254740993}, provider: aws, providerSpec: {}}\n", 1, isBad},
		"item of a List without a kind": {"apiVersion: v1\nkind: List\nitems: [{metadata: {name: x}}]\n", 1,
			"manifest: lacks apiVersion or kind"},
		"another kind": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", 2, nothingToCheck},
		"version that nobody serves": {strings.Replace(badClass, "v1alpha1", "v2", 1), 1,
			"MachineClass default/bad: no kind"},
		"apiVersion without a group": {strings.Replace(badClass, "machine.sapcloud.io/", "", 1), 1,
			"MachineClass default/bad: no"},
		"kind that nobody has": {strings.Replace(badClass, "MachineClass", "Machineclass", 1), 1,
			"Machineclass default/bad: no"},
		"MachineSet":                  {strings.Replace(badClass, "MachineClass", "MachineSet", 1), 2, nothingToCheck},
		"tab":                         {"a:\n\tb: c\n", 1, "line 2: found character that cannot start any token"},
		"template that is YAML":       {"apiVersion: v1\nkind: {{ .Values.kind }}\n", 1, "manifest: "},
		"alias without an anchor":     {secretOf + "stringData: {a: *s3cr3t}\n", 1, "unknown anchor … referenced"},
		"alias in its anchor":         {"apiVersion: v1\nkind: Secret\nmetadata: &m\n  x: *m\n", 1, "value contains itself"},
		"Secret with data, no base64": {secretOf + "data: {a: s3cr3t-}\n", 1, "Secret default/x: illegal base64 data"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, run(t, offline(), row.text, Options{}), row.code, row.says) })
	}
}

// folder has a manifest, one in a folder below that is bad, and files without any.
func folder(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": secretOf, "values.yaml": "replicas: 1\n", "README.md": "no manifest", "below/bad.yml": badClass,
		"below/deeper/b.json": "{", "empty/x.txt": "", "control\x1b[31m.yml": strings.Replace(badClass, "name: bad",
			"name: worse", 1),
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
	const passedOver = "hint     values.yaml: manifest: lacks apiVersion or kind: skipped"
	for name, row := range map[string]struct {
		files     []string
		recursive bool
		code      int
		says      []string
	}{
		"folder": {[]string{"."}, false, 1, []string{passedOver, "control?[31m.yml:4:11: MachineClass default/worse"}},
		"with those below": {[]string{"."}, true, 1, []string{"below/bad.yml:4:11: " + isBad,
			"below/deeper/b.json: manifest: "}},
		"file":             {[]string{"./below/bad.yml"}, false, 1, []string{"below/bad.yml:4:11: " + isBad}},
		"link to a folder": {[]string{"link"}, false, 1, []string{"link/bad.yml:4:11: " + isBad}},
		"named itself": {[]string{"values.yaml"}, false, 1,
			[]string{"values.yaml: manifest: lacks apiVersion or kind: must"}},
		"named twice": {[]string{"a.yaml", "./a.yaml"}, false, 2, []string{nothingToCheck}},
		"not there": {[]string{"nowhere.yaml", "a.yaml"}, false, 2,
			[]string{"nowhere.yaml: manifest: cannot be read: no such"}},
		"folder without any": {[]string{"empty"}, false, 2,
			[]string{"empty: manifest: cannot be read: the folder has no file " +
				"that ends in .json, .yaml, .yml; -R includes its subfolders"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := resource.FilenameOptions{Filenames: row.files, Recursive: row.recursive}
			result, err := Run(t.Context(), offline(), Options{Files: files})
			if err != nil {
				t.Fatal(err)
			}
			expect(t, result, row.code, row.says...)
		})
	}
}

func TestURLs(t *testing.T) {
	hangs := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/class.yaml":
			_, _ = w.Write([]byte(badClass))
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
		"class":    {"/class.yaml?token=s3cr3t", report.ExitWrong, "/class.yaml:4:11: " + isBad},
		"no such":  {"/nowhere?token=s3cr3t", report.ExitUnknown, "/nowhere: manifest: cannot be read: HTTP status 404"},
		"too late": {"/hangs.yaml?token=s3cr3t", report.ExitUnknown, "cannot be read: context deadline exceeded"},
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
		})
	}
}

// FuzzRun gives Run any text: it must not panic, and each finding must be one line.
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
	for _, spec := range []string{"null", "[]", `{"": 0}`,
		"{labels: null, bootVolume: null, networking: {nicIds: [null]}, metadata: {a: null}}"} {
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
		for _, found := range run(t, offline(), text, Options{}).Findings {
			if strings.ContainsAny(found.String(), "\n\r\x1b") {
				t.Errorf("more than a line: %q", found)
			}
		}
	})
}
