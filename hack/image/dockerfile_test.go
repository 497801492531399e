// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

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
	for _, wanted := range []string{strings.Join(built.Flags, " ") + ` -ldflags "` + flags + `"`, strings.Join(built.Env, " "), built.Main} {
		if wanted == "" || !strings.Contains(dockerfile, wanted) {
			t.Errorf("the Dockerfile lacks %q, which .ko.yaml has", wanted)
		}
	}
	if regexp.MustCompile(`(?m)^(USER|CMD) `).MatchString(dockerfile) {
		t.Error("the Dockerfile sets a user or arguments; ko leaves both to the base image")
	}
}
