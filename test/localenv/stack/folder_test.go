// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

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
