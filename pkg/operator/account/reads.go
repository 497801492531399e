// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/stackitcloud/stackit-sdk-go/core/runtime"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Class is a MachineClass with what it says without its Secrets.
type Class struct {
	*v1alpha1.MachineClass
	Inputs *provider.Inputs
}

// NewClass inspects a MachineClass without its Secrets.
func NewClass(class *v1alpha1.MachineClass) *Class {
	return &Class{class, provider.Inspect(class, nil)}
}

// Subject names the class in findings.
func (c *Class) Subject() string { return fmt.Sprintf("MachineClass %s/%s", c.Namespace, c.Name) }

// IsForeign says that the class is for another provider's sidecar.
func (c *Class) IsForeign() bool {
	return c.Provider != "" && c.Provider != provider.StackitProviderName
}

// Classes lists the MachineClasses of the namespace; "" means all. So does the list of Machines.
func (o *Access) Classes(ctx context.Context, namespace string) ([]*Class, error) {
	var list v1alpha1.MachineClassList
	err := o.list(ctx, "MachineClasses", namespace, &list)
	var classes []*Class
	for i := range list.Items {
		classes = append(classes, NewClass(&list.Items[i]))
	}
	return classes, err
}

// Machines lists those of the namespace.
func (o *Access) Machines(ctx context.Context, namespace string) ([]v1alpha1.Machine, error) {
	var list v1alpha1.MachineList
	err := o.list(ctx, "Machines", namespace, &list)
	return list.Items, err
}

func (o *Access) list(ctx context.Context, what, namespace string, into client.ObjectList) error {
	err := o.Control.List(ctx, into, client.InNamespace(namespace))
	if err == nil {
		return nil
	}
	if namespace != metav1.NamespaceAll {
		what += " in namespace " + namespace
	}
	return fmt.Errorf("listing %s: %w", what, err)
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

// Ask makes a read that the driver's client does not have, or whose Date is looked at; the zero time is
// that of no answer. what names it in errors, which are as those of the driver's client.
func Ask[T any](
	ctx context.Context, account *Account, what string, call func(context.Context) (T, error),
) (value T, date time.Time, err error) {
	var response *http.Response
	value, err = Read(runtime.WithCaptureHTTPResponse(ctx, &response), account, call)
	if response != nil {
		date = spi.Date(response.Header)
	}
	if err != nil {
		err = provider.NewAPIError("reading "+what, response, err)
	}
	return value, date, err
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

// Failure is a failed call of the API as the manager would be told of it.
func (a *Account) Failure(err error) error {
	_, text := provider.Classify(err)
	return fmt.Errorf("%s: %s", a.Origin, text)
}
