// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestParseManifests(t *testing.T) {
	for name, row := range map[string]struct {
		yaml  string
		names []string
		err   string
	}{
		"nothing":              {"", nil, ""},
		"comments alone":       {"# nothing here\n---\n# nor here\n", nil, ""},
		"one document":         {"kind: Secret\napiVersion: v1\nmetadata: {name: a}\n", []string{"a"}, ""},
		"several documents":    {"---\nkind: Secret\napiVersion: v1\nmetadata: {name: a}\n---\nkind: Secret\napiVersion: v1\nmetadata: {name: b}\n---\n", []string{"a", "b"}, ""},
		"not an object":        {"- kind: Secret\n", nil, "cannot unmarshal"},
		"an object of no kind": {"metadata: {name: a}\n", nil, "without kind or apiVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			objects, err := ParseManifests([]byte(row.yaml))
			if row.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(row.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			var names []string
			for _, object := range objects {
				names = append(names, object.GetName())
			}
			g.Expect(names).To(Equal(row.names))
		})
	}
}

func TestReadManifestsOfAFolder(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"b.yaml":    "kind: Secret\napiVersion: v1\nmetadata: {name: second}\n",
		"a.yaml":    "kind: Secret\napiVersion: v1\nmetadata: {name: first}\n",
		"README.md": "# not a manifest\n",
	} {
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
	}
	objects, err := ReadManifests(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects).To(HaveLen(2))
	g.Expect(objects[0].GetName()).To(Equal("first"))

	_, err = ReadManifests(filepath.Join(dir, "missing.yaml"))
	g.Expect(err).To(MatchError(os.ErrNotExist))

	g.Expect(os.WriteFile(filepath.Join(dir, "c.yaml"), []byte("a: b: c\n"), 0o600)).To(Succeed())
	_, err = ReadManifests(dir)
	g.Expect(err).To(MatchError(ContainSubstring("c.yaml")), "the file is named")
}
