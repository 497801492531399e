// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readManifests reads the objects of a YAML file, or of all *.yaml files of a folder sorted by name. Files may hold
// several documents; empty documents are skipped.
func readManifests(path string) ([]*unstructured.Unstructured, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	files := []string{path}
	if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
			return nil, err
		}
		slices.Sort(files)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		read, err := ParseManifests(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, read...)
	}
	return objects, nil
}

// ParseManifests parses YAML with one or several documents, each with one object. It skips empty
// documents, and returns an error for an object without kind or apiVersion.
func ParseManifests(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, err
		}
		if len(object.Object) == 0 {
			continue
		}
		if object.GetKind() == "" || object.GetAPIVersion() == "" {
			return nil, fmt.Errorf("object has no kind or apiVersion: %.60q", document)
		}
		objects = append(objects, object)
	}
}

// Apply applies objects server-side, in the given order, and takes over fields of other owners.
// Namespaced objects without a namespace go to the environment's namespace.
func (e *Env) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, object := range objects {
		namespaced, err := e.control.client.IsObjectNamespaced(object)
		if err != nil {
			return fmt.Errorf("finding out whether %s %s has a namespace: %w", object.GetKind(), object.GetName(), err)
		}
		if namespaced && object.GetNamespace() == "" {
			object.SetNamespace(e.settings.namespace)
		}
		desired := client.ApplyConfigurationFromUnstructured(object)
		if err := e.control.client.Apply(ctx, desired, client.FieldOwner("localenv"), client.ForceOwnership); err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// ApplyFile applies the objects of a YAML file, or of all *.yaml files of a folder, sorted by name.
// In Secrets that have the field serviceAccountKey in stringData, it replaces that field with the
// cloud's key.
func (e *Env) ApplyFile(ctx context.Context, path string) error {
	objects, err := readManifests(path)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := e.useServiceAccountKey(object); err != nil {
			return err
		}
		if err := e.Apply(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// useServiceAccountKey puts the cloud's key into a Secret that has the field serviceAccountKey in its stringData.
func (e *Env) useServiceAccountKey(object *unstructured.Unstructured) error {
	path := []string{"stringData", "serviceAccountKey"}
	_, found, err := unstructured.NestedString(object.Object, path...)
	if object.GetKind() != "Secret" || err != nil || !found {
		return err
	}
	return unstructured.SetNestedField(object.Object, string(e.key), path...)
}
