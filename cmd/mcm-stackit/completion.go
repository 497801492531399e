// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
)

// completionTimeout is how long somebody who pressed the tabulator key is made to wait.
const completionTimeout = 3 * time.Second

// completeContext completes --context by the kubeconfig.
func (o *options) completeContext(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	config, err := o.control.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// completeNamespace completes -n by the cluster. What cannot be had in time completes to nothing. The
// shell keeps those that begin with what was typed.
func (o *options) completeNamespace(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
	defer cancel()
	access := o.access()
	if o.connect(ctx, access); access.Control == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var namespaces corev1.NamespaceList
	_ = access.Control.List(ctx, &namespaces)
	var names []string
	for i := range namespaces.Items {
		names = append(names, namespaces.Items[i].Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
