// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ServiceAccountToken returns a token of a service account that is good for an hour.
func ServiceAccountToken(ctx context.Context, c client.Client, namespace, name string) (string, error) {
	return requestToken(ctx, c, namespace, name, authenticationv1.TokenRequestSpec{})
}

// requestToken returns a token of a service account. Without audiences it is one for the API
// server.
func requestToken(ctx context.Context, c client.Client, namespace, name string, spec authenticationv1.TokenRequestSpec) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{Spec: spec}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("token of service account %s/%s: %w", namespace, name, err)
	}
	return request.Status.Token, nil
}
