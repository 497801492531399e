// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/stackitcloud/stackit-sdk-go/core/runtime"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Class is a MachineClass with what it says, and its Secrets if they were read.
type Class struct {
	*v1alpha1.MachineClass
	Inputs *provider.Inputs
}

// Subject names a class in findings.
func Subject(class *v1alpha1.MachineClass) string {
	return fmt.Sprintf("MachineClass %s/%s", class.Namespace, class.Name)
}

// IsForeign says that a class is for another provider's sidecar.
func IsForeign(class *v1alpha1.MachineClass) bool {
	return class.Provider != "" && class.Provider != provider.StackitProviderName
}

// Classes lists the MachineClasses of the namespaces; of all namespaces if none is named. So do
// the lists of Machines and MachineDeployments.
func (o *Access) Classes(ctx context.Context, namespaces ...string) ([]*v1alpha1.MachineClass, error) {
	classes, err := listAll(ctx, o, "MachineClasses", namespaces, func(list *v1alpha1.MachineClassList) []v1alpha1.MachineClass { return list.Items })
	all := make([]*v1alpha1.MachineClass, len(classes))
	for i := range classes {
		all[i] = &classes[i]
	}
	return all, err
}

// InspectedClasses are the MachineClasses of the namespaces, inspected without their Secrets.
func (o *Access) InspectedClasses(ctx context.Context, namespaces ...string) ([]*Class, error) {
	classes, err := o.Classes(ctx, namespaces...)
	inspected := make([]*Class, 0, len(classes))
	for _, class := range classes {
		inspected = append(inspected, Inspected(class))
	}
	return inspected, err
}

// Inspected is a class, inspected without its Secrets.
func Inspected(class *v1alpha1.MachineClass) *Class {
	return &Class{class, provider.Inspect(class, nil)}
}

// Machines lists those of the namespaces.
func (o *Access) Machines(ctx context.Context, namespaces ...string) ([]v1alpha1.Machine, error) {
	return listAll(ctx, o, "Machines", namespaces, func(list *v1alpha1.MachineList) []v1alpha1.Machine { return list.Items })
}

// MachineDeployments lists those of the namespaces.
func (o *Access) MachineDeployments(ctx context.Context, namespaces ...string) ([]v1alpha1.MachineDeployment, error) {
	return listAll(ctx, o, "MachineDeployments", namespaces, func(list *v1alpha1.MachineDeploymentList) []v1alpha1.MachineDeployment { return list.Items })
}

// listAll lists the objects of each namespace; of all namespaces if none is named. What was
// listed before an error is returned beside it.
func listAll[T, L any, P interface {
	*L
	client.ObjectList
}](ctx context.Context, o *Access, what string, namespaces []string, items func(P) []T) (all []T, err error) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		var list L
		if err := o.Control.List(ctx, P(&list), client.InNamespace(namespace)); err != nil {
			if namespace != metav1.NamespaceAll {
				what += " in namespace " + namespace
			}
			return all, fmt.Errorf("listing %s: %w", what, err)
		}
		all = append(all, items(&list)...)
	}
	return all, nil
}

// Nodes lists those of the target cluster.
func (o *Access) Nodes(ctx context.Context) ([]corev1.Node, error) {
	var nodes corev1.NodeList
	if err := o.Target.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("listing Nodes: %w", err)
	}
	return nodes.Items, nil
}

// Read makes one read of the API, when its turn comes among the session's reads. The request
// timeout begins then.
func Read[T any](ctx context.Context, account *Account, call func(context.Context) (T, error)) (T, error) {
	if err := spi.WaitForRead(ctx, clock.RealClock{}, account.Session.Reads); err != nil {
		var none T
		return none, err
	}
	if account.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, account.timeout)
		defer cancel()
	}
	return call(ctx)
}

// Ask makes a read that the driver's client does not have, or whose answer is looked at; response is
// nil if there was none. what names it in errors, which are as those of the driver's client.
func Ask[T any](ctx context.Context, account *Account, what string, call func(context.Context) (T, error)) (value T, response *http.Response, err error) {
	value, err = Read(runtime.WithCaptureHTTPResponse(ctx, &response), account, call)
	if err != nil {
		err = provider.NewAPIError("reading "+what, response, err)
	}
	return value, response, err
}

// Status is that of the API's answer to a call that failed; 0 without one.
func Status(err error) int {
	var api *provider.APIError
	if !errors.As(err, &api) {
		return 0
	}
	return api.StatusCode
}

// Servers lists the account's servers that carry all the labels; nil means all servers.
func (a *Account) Servers(ctx context.Context, labels map[string]string) ([]provider.Server, error) {
	client := provider.NewClient(a.Session, a.Region)
	return Read(ctx, a, func(ctx context.Context) ([]provider.Server, error) { return client.ListServers(ctx, labels) })
}

// Server reads one of the account's servers.
func (a *Account) Server(ctx context.Context, id string) (*provider.Server, error) {
	client := provider.NewClient(a.Session, a.Region)
	return Read(ctx, a, func(ctx context.Context) (*provider.Server, error) { return client.GetServer(ctx, id) })
}

// ServerNICs lists the NICs of one of the account's servers.
func (a *Account) ServerNICs(ctx context.Context, id string) ([]provider.NIC, error) {
	client := provider.NewClient(a.Session, a.Region)
	return Read(ctx, a, func(ctx context.Context) ([]provider.NIC, error) { return client.ListServerNICs(ctx, id) })
}

// Failure is a failed call of the API as the manager would be told of it.
func (a *Account) Failure(err error) error {
	_, text := provider.Classify(err)
	return fmt.Errorf("%s: %s", a.Origin, text)
}
