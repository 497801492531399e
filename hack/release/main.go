// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command release builds the files of a release other than the image: an archive of mcm-stackit for
// each platform, the manifest with which krew installs it, and the checksums of all files. Builds
// are reproducible: the same commit, version, Go version and repository URL produce the same bytes.
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
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

const (
	command   = "./cmd/mcm-stackit"
	manifest  = "cmd/mcm-stackit/krew.yaml"
	licenses  = "cmd/machine-controller/kodata/THIRD-PARTY-LICENSES"
	checksums = "SHA256SUMS"
	linked    = "github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/buildinfo.version"
)

// platforms are the platforms for which a release has archives.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}

// archive is the file for one platform.
type archive struct{ OS, Arch, Name, Program, SHA256 string }

// newArchive names the archive and its program for a platform such as linux/amd64.
func newArchive(platform string) archive {
	made := archive{Program: "mcm-stackit"}
	made.OS, made.Arch, _ = strings.Cut(platform, "/")
	if made.OS == "windows" {
		made.Program += ".exe"
	}
	made.Name = "mcm-stackit_" + made.OS + "_" + made.Arch + ".tar.gz"
	return made
}

// release holds the values for the manifest's template.
type release struct {
	// Version is the version in the tag, such as v1.2.3.
	Version string
	// SourceURL is the page of the repository that publishes the release.
	SourceURL string
	Archives  []archive

	// committed is the commit's time, which all files in the archives get.
	committed time.Time
	folder    string
	// compile builds the program for an archive at path.
	compile func(r *release, made archive, path string) error
}

func main() {
	made := release{folder: filepath.Join("bin", "release"), compile: compile}
	flag.StringVar(&made.Version, "version", "", "version of the release, such as v1.2.3 or v1.2.3-rc.1; required")
	flag.StringVar(&made.SourceURL, "source-url", "", "page of the repository that publishes the release")
	epoch := flag.Int64("epoch", 0, "time of the commit, in seconds since 1970; all files in the archives get it")
	flag.Parse()
	made.committed = time.Unix(*epoch, 0).UTC()
	if err := made.build(platforms); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// build builds everything for the platforms.
func (r *release) build(platforms []string) error {
	if _, err := version.ParseSemantic(r.Version); err != nil || !strings.HasPrefix(r.Version, "v") {
		return fmt.Errorf("the version is %q: must be like v1.2.3 or v1.2.3-rc.1: krew accepts only such versions", r.Version)
	}
	if err := os.MkdirAll(r.folder, 0o750); err != nil {
		return err
	}
	for _, platform := range platforms {
		made, err := r.archive(platform)
		if err != nil {
			return fmt.Errorf("building for %s: %w", platform, err)
		}
		r.Archives = append(r.Archives, made)
	}
	return r.describe()
}

// archive builds the program for a platform and packs it with the licenses.
func (r *release) archive(platform string) (archive, error) {
	made := newArchive(platform)
	program := filepath.Join(r.folder, made.Program)
	defer func() { _ = os.Remove(program) }()
	if err := r.compile(r, made, program); err != nil {
		return made, err
	}
	path := filepath.Join(r.folder, made.Name)
	if err := pack(path, r.committed, program, "LICENSE", licenses); err != nil {
		return made, err
	}
	var err error
	made.SHA256, err = checksum(path)
	return made, err
}

// pack writes programs and texts into the archive at path. All entries have the commit's time and
// no owner, so that builds are reproducible.
func pack(path string, modified time.Time, files ...string) error {
	out, err := os.Create(filepath.Clean(path))
	if err != nil {
		return err
	}
	compressed := gzip.NewWriter(out)
	packed := tar.NewWriter(compressed)
	for _, file := range files {
		content, problem := os.ReadFile(filepath.Clean(file))
		header := tar.Header{
			Name: filepath.Base(file), Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content)), ModTime: modified,
		}
		if strings.HasPrefix(header.Name, "mcm-stackit") {
			header.Mode = 0o755
		}
		err = errors.Join(err, problem, packed.WriteHeader(&header))
		_, problem = packed.Write(content)
		err = errors.Join(err, problem)
	}
	return errors.Join(err, packed.Close(), compressed.Close(), out.Close())
}

// compile builds a command without Go's information about the git clone (its tags, and whether it
// is clean), which would differ from clone to clone.
func compile(r *release, made archive, path string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X "+linked+"="+r.Version, "-o",
		path, command)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+made.OS, "GOARCH="+made.Arch)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

// describe writes the manifest, and the checksums of the archives and of the manifest.
func (r *release) describe() error {
	filled, err := template.ParseFiles(manifest)
	if err != nil {
		return err
	}
	path := filepath.Join(r.folder, "mcm-stackit.yaml")
	out, err := os.Create(filepath.Clean(path))
	if err != nil {
		return err
	}
	if err := errors.Join(filled.Execute(out, r), out.Close()); err != nil {
		return err
	}
	sum, err := checksum(path)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, made := range append(r.Archives, archive{Name: filepath.Base(path), SHA256: sum}) {
		fmt.Fprintf(&lines, "%s  %s\n", made.SHA256, made.Name)
	}
	return os.WriteFile(filepath.Join(r.folder, checksums), []byte(lines.String()), 0o600)
}

func checksum(path string) (string, error) {
	content, err := os.ReadFile(filepath.Clean(path))
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), err
}
