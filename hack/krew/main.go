// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command krew builds the archives of mcm-stackit for krew, and the manifest that names
// them with their checksums, into a folder.
package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
)

const (
	program  = "kubectl-mcm_stackit"
	command  = "./cmd/mcm-stackit"
	manifest = "cmd/mcm-stackit/krew.yaml"
	linked   = "github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/buildinfo.version"
)

// semantic is the form of versions that krew takes.
var semantic = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

func main() {
	version := flag.String("version", "", "version, such as v1.2.3")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "platforms to build for")
	folder := flag.String("o", filepath.Join("bin", "krew"), "folder for what is built")
	flag.Parse()
	if err := build(*version, strings.Split(*platforms, ","), *folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// archive is one of a release's.
type archive struct{ OS, Arch, Name, SHA256 string }

func build(version string, platforms []string, folder string) error {
	if !semantic.MatchString(version) {
		return fmt.Errorf("the version is %q, must be like v1.2.3: make krew VERSION=v1.2.3", version)
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	release := struct {
		Version  string
		Archives []archive
	}{Version: version}
	for _, platform := range platforms {
		goos, arch, _ := strings.Cut(platform, "/")
		made := archive{OS: goos, Arch: arch, Name: fmt.Sprintf("mcm-stackit_%s_%s.tar.gz", goos, arch)}
		if err := made.build(version, folder); err != nil {
			return fmt.Errorf("building for %s: %w", platform, err)
		}
		release.Archives = append(release.Archives, made)
	}
	filled, err := template.ParseFiles(manifest)
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(folder, "mcm-stackit.yaml"))
	if err != nil {
		return err
	}
	return errors.Join(filled.Execute(out, release), out.Close())
}

// build builds the program and packs it with the license.
func (a *archive) build(version, folder string) error {
	binary := filepath.Join(folder, program)
	defer func() { _ = os.Remove(binary) }()
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X "+linked+"="+version, "-o", binary, command)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+a.OS, "GOARCH="+a.Arch)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	path := filepath.Join(folder, a.Name)
	if err := pack(path, binary, "LICENSE"); err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	a.SHA256 = hex.EncodeToString(sum[:])
	return nil
}

// pack writes files into an archive, without the times and owners of this computer.
func pack(path string, files ...string) error {
	out, err := os.Create(filepath.Clean(path))
	if err != nil {
		return err
	}
	zip := gzip.NewWriter(out)
	tape := tar.NewWriter(zip)
	for _, file := range files {
		err = errors.Join(err, add(tape, file))
	}
	return errors.Join(err, tape.Close(), zip.Close(), out.Close())
}

func add(tape *tar.Writer, file string) error {
	content, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return err
	}
	header := &tar.Header{Name: filepath.Base(file), Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}
	if err := tape.WriteHeader(header); err != nil {
		return err
	}
	_, err = tape.Write(content)
	return err
}
