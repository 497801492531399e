// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestFileLockIsHandedOn(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "folder", "lock")
	var left atomic.Bool
	second := make(chan error, 1)
	waiting := make(chan struct{})
	err := withFileLock(t.Context(), path, func() { t.Error("nobody is inside") }, func() error {
		go func() {
			second <- withFileLock(t.Context(), path, func() { close(waiting) }, func() error {
				if !left.Load() {
					t.Error("two are inside")
				}
				return nil
			})
		}()
		<-waiting
		left.Store(true)
		return nil
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(second).WithTimeout(10 * time.Second).Should(Receive(BeNil()))
}

func TestWaitForFileLockEndsWithTheContext(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "lock")
	ctx, cancel := context.WithCancel(t.Context())
	err := withFileLock(t.Context(), path, func() {}, func() error {
		return withFileLock(ctx, path, cancel, func() error { t.Error("let in"); return nil })
	})
	g.Expect(err).To(MatchError(context.Canceled))
}

func TestIsOurModule(t *testing.T) {
	for name, row := range map[string]struct {
		goMod string
		want  bool
	}{
		"ours":                  {"// a comment\n\nmodule " + modulePath + "\n\ngo 1.26\n", true},
		"a nested one":          {"module " + modulePath + "/hack/tools/lint\n", false},
		"one that requires us":  {"module example.com/x\n\nrequire " + modulePath + " v1.0.0\n", false},
		"empty":                 {"", false},
		"a line with no module": {"module\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(isOurModule([]byte(row.goMod))).To(Equal(row.want))
		})
	}
}

func TestBuildFailureShowsTheCompiler(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(root, "go.mod"), []byte("module example.com/broken\n\ngo 1.26\n"), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(root, "main.go"), []byte("package main\n\nfunc main() { undefined() }\n"), 0o600)).To(Succeed())
	b := builder{root: root, progress: func(string, ...any) {}}
	_, err := b.controller(t.Context(), "broken", ".")
	g.Expect(err).To(MatchError(And(HavePrefix("build: building broken:"), ContainSubstring("undefined: undefined"))))
	g.Expect(filepath.Join(root, "bin", "localenv", "broken.next")).NotTo(BeAnExistingFile())
}

func TestControllerIsBuiltAndKeptUpToDate(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	b := builder{root: root, progress: func(string, ...any) {}}
	g.Expect(os.WriteFile(filepath.Join(root, "go.mod"), []byte("module example.com/hello\n\ngo 1.26\n"), 0o600)).To(Succeed())
	for _, text := range []string{"one", "two", "two"} {
		source := "package main\n\nfunc main() { println(\"" + text + "\") }\n"
		g.Expect(os.WriteFile(filepath.Join(root, "main.go"), []byte(source), 0o600)).To(Succeed())
		path, err := b.controller(t.Context(), "hello", ".")
		g.Expect(err).NotTo(HaveOccurred())
		p, err := spawn(PartSidecar, command{path: path}, filepath.Join(t.TempDir(), "log"))
		g.Expect(err).NotTo(HaveOccurred())
		<-p.exited
		g.Expect(p.output()).To(Equal(text + "\n"))
	}
}
