// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv/stack"
)

// What users of this package need of package stack has its name here, too.
type (
	// Part is stack.Part.
	Part = stack.Part
	// PartError is stack.PartError.
	PartError = stack.PartError
	// Request is stack.Request.
	Request = stack.Request
)

// The parts that users of this package name.
const (
	PartEtcd    = stack.PartEtcd
	PartManager = stack.PartManager
	PartSidecar = stack.PartSidecar
)

// Root is stack.Root.
func Root() (string, error) { return stack.Root() }

// ParseManifests is stack.ParseManifests.
func ParseManifests(content []byte) ([]*unstructured.Unstructured, error) {
	return stack.ParseManifests(content)
}

// PodPart is stack.PodPart.
func PodPart(pod, container string) Part { return stack.PodPart(pod, container) }

// ReplicaPart is stack.ReplicaPart.
func ReplicaPart(number int) Part { return stack.ReplicaPart(number) }

// ServiceAccountToken is stack.ServiceAccountToken.
func ServiceAccountToken(ctx context.Context, c client.Client, namespace, name string) (string, error) {
	return stack.ServiceAccountToken(ctx, c, namespace, name)
}
