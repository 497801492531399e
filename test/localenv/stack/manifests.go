// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// fieldOwner is the owner of applied fields.
const fieldOwner = client.FieldOwner("localenv")

// keyField is the field of a Secret that holds the service-account key.
const keyField = "serviceAccountKey"

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
// Namespaced objects without a namespace go to the environment's namespace. Apply ignores the
// objects' status, and does not modify objects.
func (e *Env) Apply(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		desired, err := e.toUnstructured(object)
		if err != nil {
			return err
		}
		if err := e.apply(ctx, desired); err != nil {
			return fmt.Errorf("applying %s %s: %w", desired.GetKind(), desired.GetName(), err)
		}
	}
	return nil
}

// ApplyFile applies the objects of a YAML file, or of all *.yaml files of a folder, sorted by name.
// In Secrets that have the field serviceAccountKey in stringData, it replaces that field with the
// key of WithCloud, if there is one.
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

// useServiceAccountKey puts the cloud's key, if it has one, into a Secret that has the field serviceAccountKey in its
// stringData.
func (e *Env) useServiceAccountKey(object *unstructured.Unstructured) error {
	if object.GetKind() != "Secret" || len(e.settings.cloud.ServiceAccountKey) == 0 {
		return nil
	}
	if _, found, err := unstructured.NestedString(object.Object, "stringData", keyField); err != nil || !found {
		return err
	}
	key := string(e.settings.cloud.ServiceAccountKey)
	return unstructured.SetNestedField(object.Object, key, "stringData", keyField)
}

func (e *Env) apply(ctx context.Context, object *unstructured.Unstructured) error {
	desired := client.ApplyConfigurationFromUnstructured(object)
	return e.control.client.Apply(ctx, desired, fieldOwner, client.ForceOwnership)
}

// toUnstructured copies an object into the form for Apply.
func (e *Env) toUnstructured(object client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	gvk, err := apiutil.GVKForObject(object, e.control.client.Scheme())
	if err != nil {
		return nil, err
	}
	desired := (&unstructured.Unstructured{Object: content}).DeepCopy()
	desired.SetGroupVersionKind(gvk)
	delete(desired.Object, "status")
	// The API server rejects these in an apply request.
	desired.SetManagedFields(nil)
	desired.SetResourceVersion("")
	unstructured.RemoveNestedField(desired.Object, "metadata", "creationTimestamp")
	namespaced, err := e.control.client.IsObjectNamespaced(desired)
	if err != nil {
		return nil, fmt.Errorf("finding out whether %s %s has a namespace: %w", gvk.Kind, desired.GetName(), err)
	}
	if namespaced && desired.GetNamespace() == "" {
		desired.SetNamespace(e.settings.namespace)
	}
	return desired, nil
}
