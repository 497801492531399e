// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestTheManifestNamesWhatIsBuilt unpacks the archive that the manifest names for this
// computer, and runs what is in it.
func TestTheManifestNamesWhatIsBuilt(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	folder := t.TempDir()
	if err := build("v1.2.3", []string{runtime.GOOS + "/" + runtime.GOARCH}, folder); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "mcm-stackit.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var plugin struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Version, Homepage, ShortDescription, Description string
			Platforms                                        []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.UnmarshalStrict(text, &plugin); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	if plugin.Metadata.Name != "mcm-stackit" || plugin.Spec.Version != "v1.2.3" || len(plugin.Spec.Platforms) != 1 {
		t.Fatalf("the manifest is %+v", plugin)
	}
	platform := plugin.Spec.Platforms[0]
	content, err := os.ReadFile(filepath.Join(folder, platform.URI[strings.LastIndex(platform.URI, "/")+1:]))
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != platform.SHA256 {
		t.Errorf("the archive's checksum is %x, the manifest has %s", sum, platform.SHA256)
	}
	unpack(t, content, folder)
	output, err := exec.CommandContext(t.Context(), filepath.Join(folder, platform.Bin), "version").Output()
	if err != nil || string(output) != "v1.2.3\n" {
		t.Errorf("it says %q (%v), want its version", output, err)
	}
}

func unpack(t *testing.T, content []byte, folder string) {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for tape := tar.NewReader(zip); ; {
		header, err := tape.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		file, err := io.ReadAll(tape)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(header.Name)), file, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAVersionThatKrewDoesNotTake(t *testing.T) {
	for _, version := range []string{"", "1.2.3", "v1.2", "latest"} {
		if err := build(version, nil, t.TempDir()); err == nil || !strings.Contains(err.Error(), "must be like v1.2.3") {
			t.Errorf("%q: %v, want an error that says what is right", version, err)
		}
	}
}
