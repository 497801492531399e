// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package image_test builds the sidecar's image as `make image` does, for a registry of its
// own, and looks at what arrives there.
package image_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	root    = "../.."
	version = "v1.2.3"
	// user of distroless' nonroot images.
	user = 65532
	// entrypoint is where ko puts the program.
	entrypoint = "/ko-app/machine-controller"
	// licenses are those of what is linked: where they are here, and where ko puts them.
	licenses      = "cmd/machine-controller/kodata/THIRD-PARTY-LICENSES"
	imageLicenses = "/var/run/ko/THIRD-PARTY-LICENSES"
)

var platforms = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}

// newRegistry serves a registry that holds a base image for both platforms, and returns its
// host and port.
func newRegistry(t *testing.T) (host string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "http://")
	base := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, platform := range platforms {
		image, err := random.Image(1024, 1)
		must(t, err)
		config, err := image.ConfigFile()
		must(t, err)
		config.OS, config.Architecture, config.Config.User = platform.OS, platform.Architecture, "65532"
		image, err = mutate.ConfigFile(image, config)
		must(t, err)
		base = mutate.AppendManifests(base, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	must(t, remote.WriteIndex(reference(t, host+"/base:nonroot"), base))
	return host
}

// clone makes a clone of the repository, with what is not committed yet, and a tag: what is built there has
// to be the same whatever the folder and the tags.
func clone(t *testing.T, tag string) (folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "clone")
	run(t, root, "git", "clone", "--quiet", ".", folder)
	run(t, folder, "git", "tag", "--force", tag)
	if changes := run(t, root, "git", "diff", "--binary", "HEAD"); changes != "" {
		patch := filepath.Join(t.TempDir(), "changes")
		must(t, os.WriteFile(patch, []byte(changes), 0o600))
		run(t, folder, "git", "apply", patch)
	}
	return folder
}

// build runs `make image` in a folder.
func build(t *testing.T, folder, host string, arguments ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs ko, which takes a minute to build: make test-image")
	}
	ko, err := filepath.Abs(filepath.Join(root, "bin", "ko"))
	must(t, err)
	run(t, folder, "make", append([]string{"image", "KO=" + ko, "VERSION=" + version,
		"BASE_IMAGE=" + host + "/base:nonroot", "SOURCE_URL=https://example.com/provider"}, arguments...)...)
}

func pull(t *testing.T, image string) v1.ImageIndex {
	t.Helper()
	index, err := remote.Index(reference(t, image+":"+version))
	must(t, err)
	return index
}

func TestTheImage(t *testing.T) {
	t.Setenv("GOFLAGS", "-buildvcs=true") // as where nothing is set, and git is there
	host, folder := newRegistry(t), clone(t, "one")
	build(t, folder, host, "IMAGE="+host+"/Provider")
	pulled := pull(t, host+"/provider")
	must(t, validate.Index(pulled))
	inLayout, err := layout.ImageIndexFromPath(filepath.Join(folder, "bin", "image"))
	must(t, err)
	manifest, err := inLayout.IndexManifest()
	must(t, err)
	if want := digest(t, pulled); len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest != want {
		t.Errorf("bin/image holds %v, the registry %s", manifest.Manifests, want)
	}
	commit := strings.TrimSpace(run(t, root, "git", "rev-parse", "HEAD"))
	for _, platform := range platforms {
		t.Run(platform.Architecture, func(t *testing.T) {
			image := imageFor(t, pulled, platform)
			config, err := image.ConfigFile()
			must(t, err)
			if config.Config.User != "65532" || !slices.Equal(config.Config.Entrypoint, []string{entrypoint}) ||
				len(config.Config.Cmd) != 0 {
				t.Errorf("user %q, entrypoint %v, command %v", config.Config.User, config.Config.Entrypoint, config.Config.Cmd)
			}
			for label, want := range map[string]string{"title": "machine-controller-manager-provider-stackit",
				"licenses": "Apache-2.0", "version": version, "revision": commit, "source": "https://example.com/provider"} {
				if got := config.Config.Labels["org.opencontainers.image."+label]; got != want {
					t.Errorf("label %s is %q, want %q", label, got, want)
				}
			}
			expectSBOM(t, host, image)
			if content, mode := extract(t, image, imageLicenses); string(content) != read(t, licenses) || mode&0o444 != 0o444 {
				t.Errorf("%s has %d bytes and mode %o, want the repository's, for all to read", imageLicenses, len(content), mode)
			}
			if platform.OS == runtime.GOOS && platform.Architecture == runtime.GOARCH {
				if said := runProgram(t, image, "--version"); !strings.Contains(said, version) {
					t.Errorf("--version says %q, want %s", said, version)
				}
			}
		})
	}
	expectSamePushed(t, host, digest(t, pulled))
}

// expectSamePushed does as a release does: it builds with no right to push, and pushes what was built: the
// same bytes from another clone, with an SBOM for each platform to attest.
func expectSamePushed(t *testing.T, host string, pushed v1.Hash) {
	t.Helper()
	folder, output := clone(t, "v0.9.0"), filepath.Join(t.TempDir(), "output")
	build(t, folder, host)
	crane, err := filepath.Abs(filepath.Join(root, "bin", "crane"))
	must(t, err)
	run(t, folder, "make", "push-image",
		"CRANE="+crane, "IMAGE="+host+"/Other", "VERSION="+version, "GITHUB_OUTPUT="+output)
	index := pull(t, host+"/other")
	if got := digest(t, index); got != pushed {
		t.Errorf("another clone pushes %s, must push %s", got, pushed)
	}
	want := "digest=" + pushed.String() + "\n"
	for _, platform := range platforms {
		hash, err := imageFor(t, index, platform).Digest()
		must(t, err)
		want += "digest-" + platform.Architecture + "=" + hash.String() + "\n"
		sbom := "machine-controller-linux-" + platform.Architecture + ".spdx.json"
		if _, err := os.Stat(filepath.Join(folder, "bin", "image", "sbom", sbom)); err != nil {
			t.Error(err)
		}
	}
	told, err := os.ReadFile(output)
	must(t, err)
	if string(told) != want {
		t.Errorf("a workflow's next step is told %q, want %q", told, want)
	}
}

// As kubernetes/README.md has it.
func TestTheManifestsTakeTheImagesName(t *testing.T) {
	manifests := t.TempDir()
	must(t, os.CopyFS(manifests, os.DirFS(filepath.Join(root, "kubernetes", "control"))))
	program := filepath.Join(t.TempDir(), "kustomize")
	run(t, ".", "go", "build", "-o", program, "sigs.k8s.io/kustomize/kustomize/v5")
	run(t, manifests, program, "edit", "set", "image",
		"machine-controller-manager-provider-stackit=registry.example.com/provider:"+version)
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), manifests)
	must(t, err)
	rendered, err := resources.AsYaml()
	must(t, err)
	if count := strings.Count(string(rendered), "image: registry.example.com/provider:"+version+"\n"); count != 1 {
		t.Errorf("%d containers have the image, want 1", count)
	}
}

type sbomPackage struct {
	Name string `json:"name"`
}

// expectSBOM looks for the SBOM beside an image: it names the program's modules.
func expectSBOM(t *testing.T, host string, image v1.Image) {
	t.Helper()
	hash, err := image.Digest()
	must(t, err)
	attached, err := remote.Image(reference(t, host+"/provider:"+hash.Algorithm+"-"+hash.Hex+".sbom"))
	must(t, err)
	layers, err := attached.Layers()
	must(t, err)
	content, err := layers[0].Uncompressed()
	must(t, err)
	defer func() { _ = content.Close() }()
	var document struct {
		SPDXVersion string        `json:"spdxVersion"`
		Packages    []sbomPackage `json:"packages"`
	}
	must(t, json.NewDecoder(content).Decode(&document))
	manager := sbomPackage{"github.com/gardener/machine-controller-manager"}
	if !strings.HasPrefix(document.SPDXVersion, "SPDX-2") || !slices.Contains(document.Packages, manager) {
		t.Errorf("an SBOM in %q with %d packages: must be in SPDX with the manager's library",
			document.SPDXVersion, len(document.Packages))
	}
}

// extract returns a file from the image's layers, and its mode.
func extract(t *testing.T, image v1.Image, path string) (content []byte, mode os.FileMode) {
	t.Helper()
	layers := mutate.Extract(image)
	defer func() { _ = layers.Close() }()
	for tape := tar.NewReader(layers); ; {
		header, err := tape.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("no %s in the image", path)
		}
		must(t, err)
		if "/"+strings.TrimPrefix(header.Name, "/") == path {
			content, err = io.ReadAll(tape)
			must(t, err)
			return content, os.FileMode(header.Mode) & 0o777 //nolint:gosec // a mode has 12 bits
		}
	}
}

// runProgram unpacks the program from the image's layers and runs it as the image's user does.
func runProgram(t *testing.T, image v1.Image, arguments ...string) (said string) {
	t.Helper()
	content, mode := extract(t, image, entrypoint)
	folder, err := os.MkdirTemp("", "image-*") // not t.TempDir, which others cannot enter
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(folder)) })
	must(t, os.Chmod(folder, 0o755))
	program := filepath.Join(folder, "machine-controller")
	must(t, os.WriteFile(program, content, mode))
	command := exec.Command(program, arguments...)
	if os.Getuid() == 0 { // who may run it as the image's user
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return string(output)
}

func imageFor(t *testing.T, index v1.ImageIndex, platform v1.Platform) v1.Image {
	t.Helper()
	manifest, err := index.IndexManifest()
	must(t, err)
	for _, descriptor := range manifest.Manifests {
		if descriptor.Platform != nil && descriptor.Platform.Equals(platform) {
			image, err := index.Image(descriptor.Digest)
			must(t, err)
			return image
		}
	}
	t.Fatalf("no image for %v in %v", platform, manifest.Manifests)
	return nil
}

func digest(t *testing.T, index v1.ImageIndex) v1.Hash {
	t.Helper()
	hash, err := index.Digest()
	must(t, err)
	return hash
}

func reference(t *testing.T, text string) name.Reference {
	t.Helper()
	parsed, err := name.ParseReference(text)
	must(t, err)
	return parsed
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	must(t, err)
	return string(content)
}

func run(t *testing.T, folder, program string, arguments ...string) (said string) {
	t.Helper()
	command := exec.Command(program, arguments...)
	command.Dir = folder
	var problems strings.Builder
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", program, arguments, err, output, problems.String())
	}
	return string(output)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Whoever builds with docker gets the same program on the same base.
func TestTheDockerfileBuildsTheSame(t *testing.T) {
	var ko struct {
		DefaultBaseImage string `json:"defaultBaseImage"`
		Builds           []struct {
			Main                string
			Env, Flags, LDFlags []string
		} `json:"builds"`
	}
	must(t, yaml.Unmarshal([]byte(read(t, ".ko.yaml")), &ko))
	if len(ko.Builds) != 1 {
		t.Fatalf("%d builds in .ko.yaml, want 1", len(ko.Builds))
	}
	dockerfile, built := read(t, "Dockerfile"), ko.Builds[0]
	froms := regexp.MustCompile(`(?m)^FROM (\S+)$`).FindStringSubmatch(dockerfile)
	if froms == nil || froms[1] != ko.DefaultBaseImage {
		t.Errorf("the Dockerfile's base is %v, ko's %s", froms, ko.DefaultBaseImage)
	}
	flags := strings.ReplaceAll(strings.Join(built.LDFlags, " "), "{{.Env.VERSION}}", "$VERSION")
	for _, wanted := range []string{strings.Join(built.Flags, " ") + ` -ldflags "` + flags + `"`,
		strings.Join(built.Env, " "), built.Main} {
		if wanted == "" || !strings.Contains(dockerfile, wanted) {
			t.Errorf("the Dockerfile lacks %q, which .ko.yaml has", wanted)
		}
	}
	copied := "\nCOPY " + path.Dir(licenses) + "/ " + path.Dir(imageLicenses) + "/\n"
	if !strings.Contains(dockerfile, copied) {
		t.Errorf("the Dockerfile lacks %q: ko adds the folder by itself", copied)
	}
	if regexp.MustCompile(`(?m)^(USER|CMD) `).MatchString(dockerfile) {
		t.Error("the Dockerfile sets a user or arguments; ko leaves both to the base image")
	}
}
