// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
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

// controller builds a package of the main module's graph as bin/localenv/name.
func (b builder) controller(ctx context.Context, name, pkg string) (string, error) {
	return b.program(ctx, name, b.root, pkg)
}

// program builds pkg, seen from the module in dir, as bin/localenv/name. It is
// fast when nothing has changed: the present program is copied aside first, and
// the go command leaves a copy that is up to date alone instead of linking it
// again. The rename at the end never disturbs somebody who runs the old one.
func (b builder) program(ctx context.Context, name, dir, pkg string) (string, error) {
	final := b.bin("localenv", name)
	err := withFileLock(ctx, b.bin("localenv", name+".lock"), b.waitingFor(name), func() error {
		next := final + ".next"
		defer func() { _ = os.Remove(next) }()
		if err := copyFile(final, next); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		b.progress("building %s", name)
		if err := b.goBuild(ctx, dir, "-ldflags", stripped, "-o", next, pkg); err != nil {
			return err
		}
		return os.Rename(next, final)
	})
	if err != nil {
		return "", &PartError{Part: PartBuild, Err: fmt.Errorf("building %s: %w", name, err)}
	}
	return final, nil
}

// waitingFor reports that another process is building a thing.
func (b builder) waitingFor(what string) func() {
	return func() { b.progress("waiting for another process that builds %s", what) }
}

// goBuild runs "go build" in dir.
func (b builder) goBuild(ctx context.Context, dir string, args ...string) error {
	_, err := b.goCommand(ctx, dir, append([]string{"build", "-trimpath"}, args...)...)
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
	tmp := folder.path
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "TMPDIR="+tmp, "GOTMPDIR="+tmp)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// Compilers and linkers are children of the go command and must end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
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
