// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"encoding/json"
	goflag "flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

var update = goflag.Bool("update", false, "write the generated tables into README.md")

const (
	coverageBegin = "<!-- what it covers: go test ./test/iaasmock -run Readme -update -->\n"
	generatedEnd  = "<!-- end -->\n"
)

// resource is what a path is about, for readers.
func resource(path string) string {
	_, rest, inRegion := strings.Cut(path, "{region}/")
	if !inRegion {
		rest = strings.TrimPrefix(strings.TrimPrefix(path, "/v2/"), "/")
	}
	segments := strings.Split(rest, "/")
	if len(segments) > 3 && segments[0] == "servers" {
		return "servers and " + segments[2]
	}
	return segments[0]
}

// coverage is a table of the operations by resource.
func coverage(paths map[string]string) string {
	rows := map[string][]string{}
	for operation, path := range paths {
		rows[resource(path)] = append(rows[resource(path)], "`"+operation+"`")
	}
	table := "| about | operations |\n|---|---|\n"
	for _, about := range slices.Sorted(maps.Keys(rows)) {
		table += fmt.Sprintf("| %s | %s |\n", about, strings.Join(slices.Sorted(slices.Values(rows[about])), ", "))
	}
	return table
}

func TestReadmeListsTheOperations(t *testing.T) {
	checkReadme(t, coverageBegin, coverage(iaasmock.Paths()))
}

// checkReadme compares the part of README.md after begin with want, or writes it.
func checkReadme(t *testing.T, begin, want string) {
	t.Helper()
	content, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(content), begin)
	written, after, ended := strings.Cut(rest, generatedEnd)
	if !begun || !ended {
		t.Fatalf("README.md has no place for %s", begin)
	}
	if *update {
		text := before + begin + want + generatedEnd + after
		if err := os.WriteFile("README.md", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if written != want {
		t.Errorf("README.md lists\n%s\nwant\n%s", written, want)
	}
}

// declared is an operation of the API document.
type declared struct {
	OperationID string
	Responses   map[string]any
}

// declaredOperations skips the test if the API document is not available.
func declaredOperations(t *testing.T) map[string]declared {
	t.Helper()
	path := os.Getenv(conformance.Variable)
	if path == "" {
		t.Skipf("%s does not name the API document", conformance.Variable)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	found := map[string]declared{}
	for path, methods := range document.Paths {
		for method, raw := range methods {
			var operation declared
			if !slices.Contains([]string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, strings.ToUpper(method)) {
				continue
			}
			if err := json.Unmarshal(raw, &operation); err != nil {
				t.Fatalf("%s %s: %v", method, path, err)
			}
			found[operation.OperationID] = operation
		}
	}
	return found
}

// The mock has no operation that the API document does not have.
func TestOperationsAreTheAPIDocuments(t *testing.T) {
	all := declaredOperations(t)
	for _, operation := range fault.Operations {
		if _, is := all[operation]; !is && operation != "GetProject" { // the resource manager's
			t.Errorf("%s is not in the document", operation)
		}
	}
}
