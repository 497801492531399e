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

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
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

// completeNamespace completes -n by the cluster.
func (o *options) completeNamespace(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return o.complete3s(command.Context(), func(ctx context.Context, access *account.Access) ([]string, error) {
		var namespaces corev1.NamespaceList
		err := access.Control.List(ctx, &namespaces)
		var names []string
		for i := range namespaces.Items {
			names = append(names, namespaces.Items[i].Name)
		}
		return names, err
	})
}

// completeMachine completes "machine NAME" by the namespace.
func (o *options) completeMachine(command *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(words) == 0 {
		return []string{wordMachine}, cobra.ShellCompDirectiveNoFileComp
	}
	if len(words) > 1 || words[0] != wordMachine {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return o.complete3s(command.Context(), func(ctx context.Context, access *account.Access) ([]string, error) {
		machines, err := access.Machines(ctx, access.Namespace)
		var names []string
		for i := range machines {
			names = append(names, machines[i].Name)
		}
		return names, err
	})
}

// complete3s asks the cluster for names. What cannot be had in time completes to nothing. The shell
// keeps those that begin with what was typed.
func (o *options) complete3s(
	parent context.Context, names func(context.Context, *account.Access) ([]string, error),
) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(parent, completionTimeout)
	defer cancel()
	access := o.access()
	if o.connect(ctx, access); access.Control == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, err := names(ctx, access)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
