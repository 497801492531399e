// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package workflows_test

import (
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// GitHub shows no form that breaks one of its rules, and says so only to those who look at the
// file: https://docs.github.com/en/communities/using-templates-to-encourage-useful-issues-and-pull-requests/syntax-for-githubs-form-schema
func TestIssueForms(t *testing.T) {
	type form struct {
		Name        string   `json:"name"`
		Description string   `json:"description"`
		Labels      []string `json:"labels"`
		Body        []struct {
			Type       string `json:"type"`
			ID         string `json:"id"`
			Attributes struct {
				Label       string   `json:"label"`
				Description string   `json:"description"`
				Value       string   `json:"value"`
				Render      string   `json:"render"`
				Options     []string `json:"options"`
			} `json:"attributes"`
			Validations struct {
				Required bool `json:"required"`
			} `json:"validations"`
		} `json:"body"`
	}
	paths, err := filepath.Glob(filepath.Join(root, ".github", "ISSUE_TEMPLATE", "*.yml"))
	if err != nil || len(paths) < 2 {
		t.Fatalf("forms are %v: %v", paths, err)
	}
	for _, path := range paths {
		file := filepath.Base(path)
		if file == "config.yml" {
			continue
		}
		t.Run(file, func(t *testing.T) {
			var parsed form
			if err := yaml.UnmarshalStrict([]byte(read(t, filepath.Join(".github", "ISSUE_TEMPLATE", file))), &parsed); err != nil {
				t.Fatal(err)
			}
			if parsed.Name == "" || parsed.Description == "" {
				t.Error("a name or a description is missing")
			}
			var seen []string
			required := 0
			for i, element := range parsed.Body {
				if element.Validations.Required {
					required++
				}
				attributes := element.Attributes
				switch {
				case element.Type == "markdown" && attributes.Value != "":
					continue
				case !slices.Contains([]string{"input", "textarea", "dropdown"}, element.Type), attributes.Label == "",
					element.Type == "dropdown" && len(attributes.Options) < 2, attributes.Render != "" && element.Type != "textarea",
					element.ID == "", slices.Contains(seen, element.ID), slices.Contains(seen, attributes.Label):
					t.Errorf("element %d is wrong: %+v", i, element)
				}
				seen = append(seen, element.ID, attributes.Label)
			}
			if required == 0 {
				t.Error("an empty form can be sent")
			}
		})
	}
}
