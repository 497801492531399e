// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	modulePath    = "github.com/stackitcloud/machine-controller-manager-provider-stackit"
	mcmModulePath = "github.com/gardener/machine-controller-manager"

	// stripped are linker flags that leave out what only debuggers need, half
	// of each program.
	stripped = "-s -w"
)

// builder builds the programs of the environment from the repository's source.
type builder struct {
	// root is the root of the repository.
	root     string
	progress func(format string, args ...any)
}

// Root returns the root of this repository, looking upwards from the
// working directory (tests run in their package's folder).
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && isOurModule(content) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside the module %s: the programs to run cannot be built", start, modulePath)
		}
	}
}

func isOurModule(goMod []byte) bool {
	for line := range bytes.Lines(goMod) {
		fields := strings.Fields(string(line))
		if len(fields) > 1 && fields[0] == "module" {
			return fields[1] == modulePath
		}
	}
	return false
}

// bin returns a path in the ignored folder for built programs.
func (b builder) bin(elements ...string) string {
	return filepath.Join(append([]string{b.root, "bin"}, elements...)...)
}

// mainPackage is a package to build, and what the program is called in
// bin/localenv.
type mainPackage struct{ name, path string }

// executable is what "go build -o folder" calls the program.
func (p mainPackage) executable() string { return path.Base(p.path) }

// controllers builds two packages of the main module's graph and returns where
// they are: with one go command, since they share most of what is compiled.
func (b builder) controllers(ctx context.Context, manager, sidecar string) (managerPath, sidecarPath string, err error) {
	managerName, sidecarName := path.Base(manager), path.Base(sidecar)
	err = b.build(ctx, b.root, mainPackage{managerName, manager}, mainPackage{sidecarName, sidecar})
	return b.bin("localenv", managerName), b.bin("localenv", sidecarName), err
}

// tool builds pkg, pinned by the nested module hack/tools/name, and returns where
// it is.
func (b builder) tool(ctx context.Context, name, pkg string) (string, error) {
	dir := filepath.Join(b.root, "hack", "tools", name)
	return b.bin("localenv", name), b.build(ctx, dir, mainPackage{name, pkg})
}

// build builds programs, seen from the module in dir, into bin/localenv. It is
// fast when nothing has changed: the present programs are copied aside first, and
// the go command leaves a copy that is up to date alone instead of linking it
// again. The renames at the end never disturb somebody who runs the old ones.
func (b builder) build(ctx context.Context, dir string, packages ...mainPackage) error {
	names := make([]string, len(packages))
	for i, p := range packages {
		names[i] = p.name
	}
	what := strings.Join(names, " and ")
	// What is built together always begins with the same name.
	lock := b.bin("localenv", names[0]+".lock")
	err := withFileLock(ctx, lock, b.waitingFor(what), func() error {
		b.progress("building %s", what)
		return b.buildLocked(ctx, dir, packages)
	})
	if err != nil {
		return &PartError{Part: PartBuild, Err: fmt.Errorf("building %s: %w", what, err)}
	}
	return nil
}

func (b builder) buildLocked(ctx context.Context, dir string, packages []mainPackage) error {
	next := b.bin("localenv", packages[0].name+".next")
	// A process that was killed may have left one.
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	if err := os.Mkdir(next, 0o750); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(next) }()
	args := []string{"-ldflags", stripped, "-o", next}
	for _, p := range packages {
		present := b.bin("localenv", p.name)
		if err := copyFile(present, filepath.Join(next, p.executable())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		args = append(args, p.path)
	}
	if err := b.goBuild(ctx, dir, args...); err != nil {
		return err
	}
	for _, p := range packages {
		if err := os.Rename(filepath.Join(next, p.executable()), b.bin("localenv", p.name)); err != nil {
			return err
		}
	}
	return nil
}

// waitingFor reports that another process is at work, and what comes after it.
func (b builder) waitingFor(what string) func() {
	return func() { b.progress("waiting for another process before getting %s", what) }
}

// keepReporting says what is going on, and for how long, until the returned function
// is called.
func (b builder) keepReporting(every time.Duration, what func() string) (stop func()) {
	done := make(chan struct{})
	reported := make(chan struct{})
	start := time.Now()
	go func() {
		defer close(reported)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				b.progress("%s (%s)", what(), time.Since(start).Round(time.Second))
			}
		}
	}()
	return func() { close(done); <-reported }
}

// goBuild runs "go build" in dir. Its flags are those of a plain "go build", so
// that it shares what is compiled with hack/dev and with tests: the go command
// keeps packages compiled with -trimpath or another CGO_ENABLED apart.
func (b builder) goBuild(ctx context.Context, dir string, args ...string) error {
	_, err := b.goCommand(ctx, dir, append([]string{"build"}, args...)...)
	return err
}

// goCommand runs the go command and returns what it prints.
func (b builder) goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	// A go command that is interrupted leaves temporary folders, and so does a C
	// compiler it runs: they get one that goes in any case.
	folder, err := makeFolder("localenv-build-")
	if err != nil {
		return "", err
	}
	defer func() { _ = folder.remove() }()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// GOGC is the Makefile's: compilers that collect less garbage are faster.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOGC=800", "TMPDIR="+folder.path, "GOTMPDIR="+folder.path)
	return output(ctx, cmd)
}

// output runs cmd, made with ctx, and returns what it prints. When ctx ends, cmd
// ends with all its children.
func output(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// Compilers and linkers are children of the go command and must end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		command := filepath.Base(cmd.Path) + " " + strings.Join(cmd.Args[1:], " ")
		return "", fmt.Errorf("%s: %w\n%s", command, err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// moduleFolder returns where the source of one of our dependencies is.
func (b builder) moduleFolder(ctx context.Context, module string) (string, error) {
	dir, err := b.goCommand(ctx, b.root, "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		return "", err
	}
	if dir == "" {
		return "", fmt.Errorf("module %s is not in the module cache: run \"go mod download\"", module)
	}
	return dir, nil
}

// copyFile copies a program. Mode and time stay, so that the go command takes
// the copy for what the original is.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
