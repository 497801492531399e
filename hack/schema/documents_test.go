// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/validate"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// A class and its Secret, with which nothing is wrong.
const (
	class = `{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineClass",
		"metadata":{"name":"worker","namespace":"n"},"provider":"stackit","secretRef":{"name":"s","namespace":"n"},
		"providerSpec":{"machineType":"g2i.4","imageId":"` + id +
		`","bootVolume":{"size":20},"labels":{"kubernetes.io/cluster":"a"}}}`
	secretOfClass = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"n"},
		"stringData":{"projectId":"` + id + `","region":"eu01","networkId":"` + id +
		`","serviceAccountEmail":"a@sa.stackit.cloud",
		"token":"` + token + `","userData":""}}`
	// token is a JWT without a signature, for the audience "a" until 2100.
	token = "eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDAsImF1ZCI6ImEifQ."
)

// The schemas and mcm-stackit validate say the same of whole documents.
func TestSchemasAndValidateAgree(t *testing.T) {
	// change is JSON that is merged into the two documents: an object into an object.
	for change, row := range map[struct{ class, secret string }]struct{ bySchema, byValidate bool }{
		{}: {},
		{class: `{"provider":null,"nodeTemplate":null,"credentialsSecretRef":null}`}: {},
		{class: `{"provider":""}`}:                                                                 {},
		{class: `{"credentialsSecretRef":{"name":"s","namespace":"n"}}`}:                           {},
		{class: `{"secretRef":null,"credentialsSecretRef":{"name":"s","namespace":"n"}}`}:          {},
		{secret: `{"type":"Opaque","immutable":true,"stringData":{"other":"x","serviceAccountKey":null}}`}: {},
		{secret: `{"data":{"other":"eA==\n"}}`}:                                                    {},
		{secret: `{"stringData":{"project-id":"` + id + `"}}`}:                                     {},

		{class: `{"provider":"STACKIT"}`}:                                  {true, true},
		{class: `{"provider":5}`}:                                          {true, true},
		{class: `{"secretRef":null}`}:                                      {true, true},
		{class: `{"secretref":{"name":"s","namespace":"n"}}`}:              {true, true},
		{class: `{"secretRef":{"nam":"s"}}`}:                               {true, true},
		{class: `{"secretRef":{"namespace":null}}`}:                        {true, true},
		{class: `{"secretRef":{"name":""}}`}:                               {true, true},
		{class: `{"foo":1}`}:                                               {true, true},
		{class: `{"metadata":{"name":null}}`}:                              {true, true},
		{class: `{"metadata":{"name":"` + strings.Repeat("w", 64) + `"}}`}: {true, true},
		{secret: `{"type":5}`}:                                             {true, true},
		{secret: `{"stringData":{"other":5}}`}:                             {true, true},
		{secret: `{"data":{"other":"###"}}`}:                               {true, true},
		{secret: `{"data":{"networkId":"` + id + `"}}`}:                    {true, true},

		{class: `{"metadata":{"name":"Worker"}}`}:             {false, true},
		{class: `{"nodeTemplate":{"capasity":{"cpu":"1"}}}`}:  {false, true},
		{class: `{"nodeTemplate":{"capacity":{"cpu":"1"}}}`}:  {false, true},
		{class: `{"providerSpec":{"labels":null}}`}:           {false, true},
		{secret: `{"stringData":{"projectId":null}}`}:         {false, true},
		{secret: `{"stringData":{"userData":null}}`}:          {},
		{secret: `{"stringData":{"project-id":"other"}}`}:     {false, true},
		{secret: `{"stringData":{"region":"eu 01"}}`}:         {false, true},
		{secret: `{"stringData":{"serviceAccountKey":"{}"}}`}: {false, true},
		{secret: `{"immutable":"yes"}`}:                       {false, true},
	} {
		classText, secretText := merged(t, class, change.class), merged(t, secretOfClass, change.secret)
		bySchema := errors.Join(against(t, "kubernetes/schema/machineclass.json", classText),
			against(t, "kubernetes/schema/secret.json", secretText))
		findings := validated(t, classText+"\n---\n"+secretText)
		if (bySchema != nil) != row.bySchema || (findings.ExitCode() != report.ExitFine) != row.byValidate {
			t.Errorf("%+v: the schemas say %v, validate %v", change, bySchema, findings)
		}
	}
}

func against(t *testing.T, path, text string) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, path).Validate(value)
}

// validated is what mcm-stackit validate finds in a file.
func validated(t *testing.T, text string) report.Findings {
	t.Helper()
	result, err := validate.Run(t.Context(), &account.Access{Namespace: "default", Sessions: &spi.PluginSPIImpl{}},
		validate.Options{Files: resource.FilenameOptions{Filenames: []string{"-"}}, Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	return result.Findings
}

// merged puts changes into a document.
func merged(t *testing.T, document, change string) string {
	t.Helper()
	if change == "" {
		return document
	}
	var into, from map[string]any
	for text, object := range map[string]*map[string]any{document: &into, change: &from} {
		if err := json.Unmarshal([]byte(text), object); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	mergeObject(into, from)
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(into); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func mergeObject(into, from map[string]any) {
	for key, value := range from {
		below, isObject := value.(map[string]any)
		if kept, has := into[key].(map[string]any); isObject && has {
			mergeObject(kept, below)
			continue
		}
		into[key] = value
	}
}
