// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stackitcloud/stackit-sdk-go/core/oapierror"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// project is an authenticated session of the SDK in the project, with the calls of the sweep.
type project struct {
	*spi.Session

	region string
}

// newProject opens a session that sends its requests through the transport. It makes no call.
func newProject(s settings, transport http.RoundTripper) (*project, error) {
	sessions := &spi.PluginSPIImpl{Config: s.config, Transport: transport}
	session, err := sessions.Session(spi.Credentials{ProjectID: s.projectID, ServiceAccountKey: s.key})
	if err != nil {
		return nil, err
	}
	return &project{Session: session, region: s.region}, nil
}

// Kinds of resources that a run makes, or the API for it.
const (
	kindServer  = "server"
	kindNIC     = "NIC"
	kindVolume  = "volume"
	kindNetwork = "network"
)

// Statuses of servers.
const (
	statusCreating = "CREATING"
	statusError    = "ERROR"
	statusDeleted  = "DELETED"
)

// thing is a resource in the project.
type thing struct {
	kind, id string
	// name is its own or, for a NIC and a volume, the name of the server they were made for.
	name string
	// network is the network of a NIC.
	network string
}

func (t thing) String() string {
	switch {
	case t.name == "":
		return t.kind + " " + t.id
	case t.kind == kindNIC || t.kind == kindVolume:
		return fmt.Sprintf("%s %s (of %s)", t.kind, t.id, t.name)
	default:
		return fmt.Sprintf("%s %s (%s)", t.kind, t.id, t.name)
	}
}

func texts(things []thing) string {
	var all []string
	for _, t := range things {
		all = append(all, t.String())
	}
	return strings.Join(all, ", ")
}

// errNoList means that an answer has no body: it must not count as an empty list.
var errNoList = errors.New("the answer has no list")

// list returns the items of an answer. The SDK's decoder sets the additional properties only if it
// found the items, or a null in their place.
func list[T any](call string, items []T, additional map[string]any, err error) ([]T, error) {
	if err == nil && items == nil && additional == nil {
		err = errNoList
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", call, err)
	}
	return items, nil
}

// servers lists the project's servers by a label selector; "" selects all. Only details show NICs and
// boot volumes.
func (p *project) servers(ctx context.Context, selector string, details bool) ([]iaas.Server, error) {
	if err := p.Reads.Wait(ctx); err != nil {
		return nil, err
	}
	request := p.API.ListServers(ctx, p.ProjectID, p.region).Details(details)
	if selector != "" {
		request = request.LabelSelector(selector)
	}
	answer, err := request.Execute()
	answer = cmp.Or(answer, &iaas.ServerListResponse{})
	return list("listing servers", answer.Items, answer.AdditionalProperties, err)
}

// server reads a server with details.
func (p *project) server(ctx context.Context, id string) (*iaas.Server, error) {
	if err := p.Reads.Wait(ctx); err != nil {
		return nil, err
	}
	return p.API.GetServer(ctx, p.ProjectID, p.region, id).Details(true).Execute()
}

// nics lists the NICs of a network.
func (p *project) nics(ctx context.Context, network string) ([]iaas.NIC, error) {
	if err := p.Reads.Wait(ctx); err != nil {
		return nil, err
	}
	answer, err := p.API.ListNics(ctx, p.ProjectID, p.region, network).Execute()
	answer = cmp.Or(answer, &iaas.NICListResponse{})
	return list("listing NICs", answer.Items, answer.AdditionalProperties, err)
}

// volumes lists the project's volumes.
func (p *project) volumes(ctx context.Context) ([]iaas.Volume, error) {
	if err := p.Reads.Wait(ctx); err != nil {
		return nil, err
	}
	answer, err := p.API.ListVolumes(ctx, p.ProjectID, p.region).Execute()
	answer = cmp.Or(answer, &iaas.VolumeListResponse{})
	return list("listing volumes", answer.Items, answer.AdditionalProperties, err)
}

// networks lists the project's networks.
func (p *project) networks(ctx context.Context) ([]iaas.Network, error) {
	if err := p.Reads.Wait(ctx); err != nil {
		return nil, err
	}
	answer, err := p.API.ListNetworks(ctx, p.ProjectID, p.region).Execute()
	answer = cmp.Or(answer, &iaas.NetworkListResponse{})
	return list("listing networks", answer.Items, answer.AdditionalProperties, err)
}

// delete sends one DELETE.
func (p *project) delete(ctx context.Context, t thing) error {
	switch t.kind {
	case kindServer:
		return p.API.DeleteServer(ctx, p.ProjectID, p.region, t.id).Execute()
	case kindNIC:
		return p.API.DeleteNic(ctx, p.ProjectID, p.region, t.network, t.id).Execute()
	case kindVolume:
		return p.API.DeleteVolume(ctx, p.ProjectID, p.region, t.id).Execute()
	default:
		return p.API.DeleteNetwork(ctx, p.ProjectID, p.region, t.id).Execute()
	}
}

// statusOf returns the HTTP status with which the API has answered, 0 if it has not.
func statusOf(err error) int {
	var notSent *spi.NotSentError // may carry the status of the token endpoint
	var answer *oapierror.GenericOpenAPIError
	if errors.As(err, &notSent) || !errors.As(err, &answer) {
		return 0
	}
	return answer.StatusCode
}

// isGone reports whether the error is an answer that the resource does not exist.
func isGone(err error) bool {
	return statusOf(err) == http.StatusNotFound || statusOf(err) == http.StatusGone
}

// isRefusal reports whether the API has refused the request for a reason that lies in the request.
func isRefusal(err error) bool {
	status := statusOf(err)
	return status >= 400 && status < 500 && status != http.StatusUnauthorized && status != http.StatusTooManyRequests
}

// describe returns an error in one short line, with the status and the body of an answer.
func describe(err error) string {
	text := err.Error()
	var answer *oapierror.GenericOpenAPIError
	if status := statusOf(err); status != 0 && errors.As(err, &answer) {
		text = fmt.Sprintf("%d %s", status, answer.Body)
	}
	const maxText = 300
	// Redacted before it is cut: half an address would not look like one.
	text = redact(oneLine(text))
	return text[:min(len(text), maxText)]
}

// pause waits for the duration. If ctx ends before, it returns the cause.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
