// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package schema generates JSON Schemas and tables of the fields that users write, from the
// driver's types, their comments and the limits in package validation. It also extracts the facts
// of the official API document. Its tests compare the files with these; with -update they write them.
package schema

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// Paths of the packages whose types and comments are read, relative to this folder, where tests
// run.
const (
	module = "github.com/stackitcloud/machine-controller-manager-provider-stackit/hack/schema"
	types  = "../../pkg/provider/apis"
)

// draft is the version of JSON Schema that editors support best.
const draft = "http://json-schema.org/draft-07/schema#"

// node is a part of a JSON Schema.
type node = map[string]any

// reflected returns the schema of a type whose fields are named by a tag, with their comments
// as descriptions.
func reflected(of any, tag string) (node, error) {
	reflector := &jsonschema.Reflector{Anonymous: true, DoNotReference: true, FieldNameTag: tag}
	if err := reflector.AddGoComments(module, types); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(reflector.Reflect(of))
	if err != nil {
		return nil, err
	}
	var schema node
	return schema, json.Unmarshal(encoded, &schema)
}

// providerSpec returns the schema of a providerSpec.
func providerSpec() (node, error) {
	schema, err := reflected(&apis.ProviderSpec{}, "json")
	if err != nil {
		return nil, err
	}
	limits := validation.SpecLimits()
	complete(schema, "", limits)
	schema["required"] = []any{"machineType"}
	properties, _ := schema["properties"].(node)
	if boot, isNode := properties["bootVolume"].(node); isNode { // an existing volume has its size
		boot["if"] = node{"required": []any{"source"}, "properties": node{"source": node{
			"type": "object", "required": []any{"type"}, "properties": node{"type": node{"const": apis.SourceVolume}},
		}}}
		boot["else"] = node{"required": []any{"size"}, "properties": node{"size": node{"type": "integer"}}}
	}
	for path := range limits {
		return nil, fmt.Errorf("package validation has limits for %s: must be the path of a field of the providerSpec", path)
	}
	return schema, nil
}

// complete adds limits to a schema and its children, and removes them from the map. Fields may be
// null, which means unset.
func complete(schema node, path string, limits map[string]validation.Limits) {
	delete(schema, "$schema")
	delete(schema, "required")
	properties, _ := schema["properties"].(node)
	for name, property := range properties {
		if below, isNode := property.(node); isNode {
			complete(below, strings.TrimPrefix(path+"."+name, "."), limits)
		}
	}
	for _, part := range []string{"items", "additionalProperties"} {
		if below, isNode := schema[part].(node); isNode {
			complete(below, path+"[]", limits)
		}
	}
	if path == "metadata" {
		values := node{"type": []any{"string", "number", "boolean"}}
		complete(values, path+"[]", limits)
		schema["additionalProperties"] = values
	}
	limit := limits[path]
	delete(limits, path)
	put(limit, schema)
	isItem := strings.HasSuffix(path, "[]") && path != "labels[]" // a label that is null is empty
	if path != "" && path != "machineType" && !isItem {
		orNull(schema)
	}
}

// orNull makes a schema accept null, too.
func orNull(schema node) {
	kinds, several := schema["type"].([]any)
	if !several {
		kinds = []any{schema["type"]}
	}
	schema["type"] = append(kinds, "null")
	if values, limited := schema["enum"].([]any); limited {
		schema["enum"] = append(values, nil)
	}
}

// put adds limits to a schema.
func put(limit validation.Limits, schema node) {
	for name, value := range map[string]int{"maxLength": limit.MaxLength, "minimum": limit.Minimum,
		"maximum": limit.Maximum} {
		if value != 0 {
			schema[name] = value
		}
	}
	if limit.Pattern != nil {
		schema["pattern"] = limit.Pattern.String()
		if limit.Unset {
			schema["pattern"] = "^$|" + limit.Pattern.String()
		}
	}
	if limit.MaxItems > 0 && schema["type"] == "array" {
		schema["maxItems"] = limit.MaxItems
	} else if limit.MaxItems > 0 {
		schema["maxProperties"] = limit.MaxItems
	}
	if limit.Keys != nil {
		keys := node{}
		put(*limit.Keys, keys)
		schema["propertyNames"] = keys
	}
	if len(limit.Values) > 0 {
		values := []any{}
		for _, value := range limit.Values {
			values = append(values, value)
		}
		if limit.Unset {
			values = append(values, "")
		}
		schema["enum"] = values
	}
}

// machineClass returns the schema of a MachineClass with a providerSpec of the driver's.
func machineClass() (node, error) {
	spec, err := providerSpec()
	if err != nil {
		return nil, err
	}
	secretRef := func(description string) node {
		return node{"type": "object", "description": description, "required": []any{"name", "namespace"},
			"additionalProperties": false,
			"properties": node{"name": node{"type": "string", "minLength": 1},
				"namespace": node{"type": "string", "minLength": 1}}}
	}
	first, second := secretRef("The Secret with user data, credentials and defaults."),
		secretRef("A second Secret; its keys take precedence.")
	orNull(first)
	orNull(second)
	has := func(name string) node {
		return node{"required": []any{name}, "properties": node{name: node{"type": "object"}}}
	}
	return node{
		"$schema": draft, "title": "MachineClass", "type": "object",
		"description": "A MachineClass of machine-controller-manager for STACKIT.",
		"required":    []any{"apiVersion", "kind", "metadata", "providerSpec"}, "additionalProperties": false,
		"anyOf": []any{has("secretRef"), has("credentialsSecretRef")},
		"properties": node{
			"apiVersion": node{"const": "machine.sapcloud.io/v1alpha1"},
			"kind":       node{"const": "MachineClass"},
			"metadata": node{"type": "object", "required": []any{"name"}, "properties": node{
				"name": node{"type": "string", "minLength": 1, "maxLength": validation.MaxLabel,
					"description": "It becomes a label of the servers."},
			}},
			"provider": node{"enum": []any{provider.StackitProviderName, "", nil},
				"description": "The driver's name, stackit, or empty."},
			"secretRef":            first,
			"credentialsSecretRef": second,
			"nodeTemplate": node{
				"type":        []any{"object", "null"},
				"description": "What a Node of the class will offer, for the cluster autoscaler to scale up from zero.",
			},
			"providerSpec": spec,
		},
	}, nil
}

// base64 matches texts that encoding/base64 accepts, which ignores line breaks.
const base64 = "^[A-Za-z0-9+/=\\r\\n]*$"

// secret returns the schema of a Secret to which a MachineClass refers. The schema cannot limit the
// values: they may be in base64, and the driver ignores surrounding white space.
func secret() (node, error) {
	keys, err := reflected(&apis.Secret{}, "key")
	if err != nil {
		return nil, err
	}
	properties, _ := keys["properties"].(node)
	for gardener, key := range apis.GardenerSpellings {
		properties[gardener] = node{"type": "string", "description": "Gardener's spelling of " + key + "."}
	}
	encoded := node{}
	for key, property := range properties {
		plain, isNode := property.(node)
		if !isNode {
			return nil, fmt.Errorf("the schema of the Secret's key %s is not an object", key)
		}
		complete(plain, key, nil)
		encoded[key] = node{"type": plain["type"], "description": plain["description"], "contentEncoding": "base64",
			"pattern": base64}
	}
	object := func(properties, others node) node {
		return node{"type": []any{"object", "null"}, "properties": properties, "additionalProperties": others}
	}
	return node{
		"$schema": draft, "title": "Secret", "type": "object",
		"description": "The Secret of a MachineClass for STACKIT: credentials, user data and defaults.",
		"required":    []any{"apiVersion", "kind", "metadata"},
		"properties": node{
			"apiVersion": node{"const": "v1"}, "kind": node{"const": "Secret"}, "metadata": node{"type": "object"},
			"type":       node{"type": []any{"string", "null"}},
			"stringData": object(properties, node{"type": []any{"string", "null"}}),
			"data":       object(encoded, node{"type": []any{"string", "null"}, "pattern": base64}),
		},
	}, nil
}

// Files returns the content of the schema files, by their path in the repository.
func Files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for path, make := range map[string]func() (node, error){
		"kubernetes/schema/machineclass.json": machineClass, "kubernetes/schema/secret.json": secret,
	} {
		schema, err := make()
		if err != nil {
			return nil, err
		}
		encoded, err := json.MarshalIndent(schema, "", "  ")
		if err != nil {
			return nil, err
		}
		files[path] = append(encoded, '\n')
	}
	return files, nil
}
