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
	const a = "kind: Secret\napiVersion: v1\nmetadata: {name: a}\n"
	const b = "kind: Secret\napiVersion: v1\nmetadata: {name: b}\n"
	for name, row := range map[string]struct {
		yaml  string
		names []string
		err   string
	}{
		"nothing":              {"", nil, ""},
		"comments alone":       {"# nothing here\n---\n# nor here\n", nil, ""},
		"one document":         {a, []string{"a"}, ""},
		"several documents":    {"---\n" + a + "---\n" + b + "---\n", []string{"a", "b"}, ""},
		"not an object":        {"- kind: Secret\n", nil, "cannot unmarshal"},
		"an object of no kind": {"metadata: {name: a}\n", nil, "no kind or apiVersion"},
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
	objects, err := readManifests(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects).To(HaveLen(2))
	g.Expect(objects[0].GetName()).To(Equal("first"))

	_, err = readManifests(filepath.Join(dir, "missing.yaml"))
	g.Expect(err).To(MatchError(os.ErrNotExist))

	g.Expect(os.WriteFile(filepath.Join(dir, "c.yaml"), []byte("a: b: c\n"), 0o600)).To(Succeed())
	_, err = readManifests(dir)
	g.Expect(err).To(MatchError(ContainSubstring("c.yaml")), "the file is named")
}

func TestAbandonedFoldersAreRemoved(t *testing.T) {
	g := NewWithT(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	living, err := makeFolder()
	g.Expect(err).NotTo(HaveOccurred())
	abandoned, err := makeFolder()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(abandoned.path, "content"), nil, 0o600)).To(Succeed())
	// As the kernel does when the owner dies.
	g.Expect(abandoned.owner.Close()).To(Succeed())
	// Not ours, or not yet.
	beingMade := filepath.Join(tmp, "localenv-being-made")
	g.Expect(os.Mkdir(beingMade, 0o700)).To(Succeed())
	another := filepath.Join(tmp, "another-folder")
	g.Expect(os.Mkdir(another, 0o700)).To(Succeed())
	link := filepath.Join(tmp, "localenv-link")
	g.Expect(os.Symlink(another, link)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(another, ownerFile), nil, 0o600)).To(Succeed())

	removeAbandonedFolders()

	g.Expect(abandoned.path).NotTo(BeAnExistingFile())
	for _, path := range []string{living.path, beingMade, another, link} {
		g.Expect(path).To(BeAnExistingFile())
	}
	g.Expect(living.remove()).To(Succeed())
	g.Expect(living.path).NotTo(BeAnExistingFile())
}
