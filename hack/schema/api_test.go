// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The facts are those of the API document that IAAS_OPENAPI names. Without it, they are
// their own facts: sorted, and without a sentence.
func TestAPIFactsAreCurrent(t *testing.T) {
	const path = "test/iaasmock/openapi/iaas.json"
	document := os.Getenv("IAAS_OPENAPI")
	if document == "" {
		document = filepath.Join(root, path)
	}
	content, err := os.ReadFile(document) //nolint:gosec // the file that the developer names
	if err != nil {
		t.Fatal(err)
	}
	facts, err := apiFacts(content)
	if err != nil {
		t.Fatal(err)
	}
	current(t, path, facts)
}

func TestFactsHaveNoSentences(t *testing.T) {
	const document = `{"openapi":"3.0.1","info":{"title":"a","description":"b"},"tags":[],"paths":{"/a":{"get":{"summary":"c","operationId":"D",` +
		`"x-stackit-logging":1,"responses":{"200":{"description":"d","content":{"application/json":{"example":1,"schema":{"$ref":"#/components/schemas/E"}}}}}}}},` +
		`"components":{"parameters":{},"responses":{},"schemas":{"E":{"type":"object","title":"e","properties":{"title":{"type":"integer","maximum":9223372036854775807},` +
		`"description":{"type":"string","description":"f","pattern":"^<&>$","x-extensible-enum":["g"]}}}}}}`
	const want = `"paths":{
"/a":{
"get":{"operationId":"D","responses":{"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/E"}}}}}}
}
}
}
`
	const schemas = `"schemas":{
"E":{"properties":{"description":{"pattern":"^<&>$","type":"string","x-extensible-enum":["g"]},"title":{"maximum":9223372036854775807,"type":"integer"}},"type":"object"}
}
}`
	facts, err := apiFacts([]byte(document))
	if text := string(facts); err != nil || !strings.HasSuffix(text, want) || !strings.Contains(text, schemas) {
		t.Errorf("%v\n%s", err, text)
	}
}
