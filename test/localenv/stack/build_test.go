// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// newModule makes a module whose packages are main packages.
func newModule(t *testing.T, dir, path string, mains map[string]string) {
	t.Helper()
	files := map[string]string{"go.mod": "module " + path + "\n\ngo 1.26\n"}
	for pkg, body := range mains {
		files[filepath.Join(pkg, "main.go")] = "package main\n\nfunc main() { " + body + " }\n"
	}
	writeFiles(t, dir, files)
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBuildFailureShowsTheCompiler(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	newModule(t, root, "example.com/x", map[string]string{"good": "", "broken": "undefined()"})
	b := builder{root: root, progress: func(string, ...any) {}}
	_, _, err := b.controllers(t.Context(), "./good", "./broken")
	g.Expect(err).To(MatchError(And(HavePrefix("build: building good and broken:"), ContainSubstring("undefined: undefined"))))
	g.Expect(filepath.Glob(filepath.Join(root, "bin", "localenv", "*"))).To(ConsistOf(HaveSuffix("good.lock")))
}

func TestControllersAreBuiltAndKeptUpToDate(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	b := builder{root: root, progress: func(string, ...any) {}}
	for _, text := range []string{"one", "two", "two"} {
		newModule(t, root, "example.com/x", map[string]string{"manager": `println("manager")`, "sidecar": `println("` + text + `")`})
		manager, sidecar, err := b.controllers(t.Context(), "example.com/x/manager", "./sidecar")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(says(t, manager)).To(Equal("manager"))
		g.Expect(says(t, sidecar)).To(Equal(text))
	}
}

func TestToolHasItsOwnName(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	b := builder{root: root, progress: func(string, ...any) {}}
	newModule(t, filepath.Join(root, "hack", "tools", "hello"), "example.com/x", map[string]string{"hello-cli": `println("hello")`})
	path, err := b.tool(t.Context(), "hello", "example.com/x/hello-cli")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(path).To(Equal(filepath.Join(root, "bin", "localenv", "hello")))
	g.Expect(says(t, path)).To(Equal("hello"))
}

// says returns what a program prints.
func says(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command(path).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
