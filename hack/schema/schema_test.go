// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/santhosh-tekuri/jsonschema/v6"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

const root = "../.."

var update = flag.Bool("update", false, "write the schemas and tables anew")

// current compares a file of the repository with what it has to be, or writes it.
func current(t *testing.T, path string, want []byte) {
	t.Helper()
	path = filepath.Join(root, filepath.FromSlash(path))
	if *update {
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not current (%v): make generated writes it", path, err)
	}
}

func TestSchemasAreCurrent(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range files {
		current(t, path, content)
	}
}

func TestTablesAreCurrent(t *testing.T) {
	const path = "pkg/provider/apis/README.md"
	page, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	want, err := WithTables(string(page))
	if err != nil {
		t.Fatal(err)
	}
	current(t, path, []byte(want))
}

// compile returns the schema of a file, whose patterns Go's regexp takes.
func compile(t testing.TB, path string) *jsonschema.Schema {
	t.Helper()
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(files[path]))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(path, document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile(path)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// refusals are what the schema, and what the driver's validation with unknown fields refused,
// says against a MachineClass with this providerSpec.
func refusals(t testing.TB, schema *jsonschema.Schema, spec []byte) (bySchema, byValidation error) {
	t.Helper()
	class := &v1alpha1.MachineClass{ProviderSpec: runtime.RawExtension{Raw: spec},
		SecretRef: &corev1.SecretReference{Name: "s", Namespace: "n"}}
	class.APIVersion, class.Kind, class.Name = "machine.sapcloud.io/v1alpha1", "MachineClass", "worker"
	secret := &corev1.Secret{Data: map[string][]byte{
		"projectId": []byte(id), "serviceAccountKey": []byte("{}"), "region": []byte("eu01"), "networkId": []byte(id),
		"userData": nil,
	}}
	inputs := provider.Inspect(class, secret)
	byValidation = inputs.Errors.ToAggregate()
	if len(inputs.Unknown) > 0 {
		byValidation = inputs.Unknown[0]
	}
	const start = `{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineClass","metadata":{"name":"worker"},` +
		`"secretRef":{"name":"s","namespace":"n"},"providerSpec":`
	object := append(append([]byte(start), spec...), '}')
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(object))
	if err != nil {
		return err, byValidation
	}
	return schema.Validate(value), byValidation
}

const id = "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"

// bySchemaToo are fields over those of a valid providerSpec that schema and validation both refuse.
var bySchemaToo = []string{
	`{"machineType":null}`, `{"machineType":""}`, `{"machineType":5}`, `{"machineType":"g2i.4 "}`, `{"region":"eu 01"}`,
	`{"region":["eu01"]}`, `{"imageId":"ubuntu"}`, `{"imageId":"` + strings.ToUpper(id) + `"}`,
	`{"labels":{"stackit/x/":"a"}}`, `{"labels":{"a":"b c"}}`, `{"labels":{"a":5}}`, `{"networking":{"networkId":"net"}}`,
	`{"networking":{"networkID":"` + id + `"}}`, `{"networking":{"nicIds":["nic"]}}`, `{"allowedAddresses":"10.0.0.0/8"}`,
	`{"securityGroups":[""]}`, `{"securityGroups":[null]}`, `{"bootVolume":{"size":0}}`, `{"bootVolume":{"size":16001}}`,
	`{"bootVolume":{"size":"20"}}`, `{"bootVolume":{"size":20.5}}`,
	`{"bootVolume":{"source":{"type":"tape","id":"` + id + `"}}}`, `{"bootVolume":{"deleteOnTermination":"yes"}}`,
	`{"volumes":["disk"]}`, `{"keypairName":"a key"}`, `{"affinityGroup":"spread"}`,
	`{"serviceAccountMails":["a@b.c","d@e.f"]}`, `{"serviceAccountMails":["nobody"]}`, `{"agent":{"provisioned":1}}`,
	`{"configDrive":"true"}`, `{"metadata":{"a":[]}}`, `{"metadata":{"a":null}}`, `{"metadata":{"a":"b\nc"}}`, `{"KeypairName":null}`,
	`{"Labels":{"a":"b"}}`, `{"bootVolume":{"size":20,"Size":20}}`, `{"metadata":{"ä":"b"}}`, `{"machineTyp":"g2i.4"}`,
	`{"agent":{"installed":true}}`, `{"bootVolume":{}}`, `{"bootVolume":{"size":null}}`, `{"bootVolume":{"source":{}}}`,
	`{"bootVolume":{"performanceClass":"a","source":null}}`,
	`{"imageId":null,"bootVolume":{"source":{"type":"image","id":"` + id + `"}}}`,
	`{"imageId":null,"bootVolume":{"source":{"type":"snapshot","id":"` + id + `"}}}`,
	`{"labels":{"` + strings.Repeat("a", 64) + `":"b"}}`,
	`{"serviceAccountMails":["` + strings.Repeat("ä", 250) + `a@b.cd"]}`,
}

// byValidationAlone break rules that the schema leaves out: pkg/provider/apis/README.md lists them.
var byValidationAlone = []string{
	`{"imageId":null}`,
	`{"imageId":"` + id +
		`","bootVolume":{"size":20,"source":{"type":"image","id":"10000000-0000-4000-8000-000000000001"}}}`,
	`{"networking":{"networkId":"` + id + `","nicIds":["` + id + `"]}}`, `{"allowedAddresses":["10.0.0.0/33"]}`,
	`{"bootVolume":{"source":{"type":"volume","id":"` + id + `"},"deleteOnTermination":true},"imageId":null}`,
	`{"labels":{"stackit-x":"a"}}`, `{"labels":{"a/cluster":""}}`,
	`{"bootVolume":{"size":20,"source":{"type":"image"}},"imageId":null}`,
}

// byBothAccepted are fields that neither refuses.
var byBothAccepted = []string{
	`{}`,
	`{"region":null,"labels":null,"networking":null,"bootVolume":null,"agent":null,"metadata":null,"volumes":null,` +
		`"configDrive":null}`,
	`{"region":"","imageId":"` + id + `","networking":{},"bootVolume":{"size":20,"source":{}},` +
		`"keypairName":"","affinityGroup":"","userData":"","availabilityZone":""}`,
	`{"labels":{"kubernetes.io/cluster":"a","b":null,"c":"","Region":"d"}}`,
	`{"metadata":{"a":1,"b":true,"d":"x","e":1.5}}`, `{"volumes":["` + id + `","` + id + `"]}`,
	`{"bootVolume":{"size":16000,"performanceClass":"storage_premium_perf4","deleteOnTermination":false,"source":null}}`,
	`{"imageId":null,"bootVolume":{"size":20,"source":{"type":"snapshot","id":"` + id + `"}}}`,
	`{"imageId":null,"bootVolume":{"source":{"type":"volume","id":"` + id + `"}}}`,
	`{"allowedAddresses":["::1","10.0.0.0/8"]}`,
	`{"serviceAccountMails":["` + strings.Repeat("ä", 230) + `a@sa.stackit.cloud"]}`,
	`{"serviceAccountMails":["a@sa.stackit.cloud"],"securityGroups":["default","` + id + `"]}`,
}

// over puts fields over those of a valid providerSpec.
func over(t testing.TB, fields string) []byte {
	t.Helper()
	spec := map[string]any{}
	for _, text := range []string{`{"machineType":"g2i.4","imageId":"` + id + `"}`, fields} {
		if err := json.Unmarshal([]byte(text), &spec); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	encoded, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func TestSchemaAndValidationAgree(t *testing.T) {
	schema := compile(t, "kubernetes/schema/machineclass.json")
	for _, rows := range []struct {
		fields                 []string
		bySchema, byValidation bool
	}{{byBothAccepted, false, false}, {bySchemaToo, true, true}, {byValidationAlone, false, true}} {
		for _, fields := range rows.fields {
			bySchema, byValidation := refusals(t, schema, over(t, fields))
			if (bySchema != nil) != rows.bySchema || (byValidation != nil) != rows.byValidation {
				t.Errorf("%s: the schema says %v, the validation %v", fields, bySchema, byValidation)
			}
		}
	}
}

// What validation accepts the schema accepts: so what the schema refuses is refused.
func FuzzSchema(f *testing.F) {
	for _, rows := range [][]string{byBothAccepted, bySchemaToo, byValidationAlone} {
		for _, fields := range rows {
			f.Add(over(f, fields))
		}
	}
	schema := compile(f, "kubernetes/schema/machineclass.json")
	f.Fuzz(func(t *testing.T, spec []byte) {
		if bySchema, byValidation := refusals(t, schema, spec); bySchema != nil && byValidation == nil {
			t.Errorf("%s is valid, and the schema says: %v", spec, bySchema)
		}
	})
}

// The samples name their schemas for editors, and the schemas take them.
func TestSamplesFollowTheirSchemas(t *testing.T) {
	for sample, path := range map[string]string{
		"machine-class.yaml":         "kubernetes/schema/machineclass.json",
		"machine-class-minimal.yaml": "kubernetes/schema/machineclass.json",
		"secret.yaml":                "kubernetes/schema/secret.json",
	} {
		content, err := os.ReadFile(filepath.Join(root, "samples", sample))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(content, []byte("# yaml-language-server: $schema=../"+path+"\n")) {
			t.Errorf("%s does not name ../%s in its first line", sample, path)
		}
		encoded, err := yaml.YAMLToJSON(content)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
		if err != nil {
			t.Fatal(err)
		}
		if err := compile(t, path).Validate(value); err != nil {
			t.Errorf("%s: %v", sample, err)
		}
	}
}

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
	const document = `{"openapi":"3.0.1","info":{"title":"a","description":"b"},"tags":[],` +
		`"paths":{"/a":{"get":{"summary":"c","operationId":"D",` +
		`"x-stackit-logging":1,"responses":{"200":{"description":"d","content":{"application/json":` +
		`{"example":1,"schema":{"$ref":"#/components/schemas/E"}}}}}}}},` +
		`"components":{"parameters":{},"responses":{},"schemas":{"E":{"type":"object","title":"e",` +
		`"properties":{"title":{"type":"integer","maximum":9223372036854775807},` +
		`"description":{"type":"string","description":"f","pattern":"^<&>$","x-extensible-enum":["g"]}}}}}}`
	const want = `"paths":{
"/a":{
"get":{"operationId":"D","responses":{"200":{"content":{"application/json":{` +
		`"schema":{"$ref":"#/components/schemas/E"}}}}}}
}
}
}
`
	const schemas = `"schemas":{
"E":{"properties":{"description":{"pattern":"^<&>$","type":"string","x-extensible-enum":["g"]},` +
		`"title":{"maximum":9223372036854775807,"type":"integer"}},"type":"object"}
}
}`
	facts, err := apiFacts([]byte(document))
	if text := string(facts); err != nil || !strings.HasSuffix(text, want) || !strings.Contains(text, schemas) {
		t.Errorf("%v\n%s", err, text)
	}
}
