// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/internal/coalesce"
)

// What feeds the meters of metrics.go from reads and API calls: decorators, so that what reads
// and calls need not mention them. What only a driver method knows (a creation that has ended,
// a server that is proved gone, a duplicate, an orphan), the method tells the meters itself.

// readMeter measures the reads of a resource.
type readMeter struct {
	*meters
	resource string
}

var _ coalesce.Observer = readMeter{}

// Waiting implements coalesce.Observer.
func (m readMeter) Waiting(change int) { m.waiting.WithLabelValues(m.resource).Add(float64(change)) }

// Read implements coalesce.Observer.
func (m readMeter) Read(byList bool) {
	m.reads.WithLabelValues(m.resource, readKindLabel(byList)).Inc()
}

// Served implements coalesce.Observer.
func (m readMeter) Served(byList bool) {
	m.callers.WithLabelValues(m.resource, readKindLabel(byList)).Inc()
}

func readKindLabel(byList bool) string {
	if byList {
		return kindList
	}
	return kindSingle
}

// meteredClient counts what a StackitClient is asked for.
type meteredClient struct {
	StackitClient
	meters            *meters
	projectID, region string
}

// CreateServer implements StackitClient.
func (c *meteredClient) CreateServer(ctx context.Context, request *ServerRequest) (*Server, error) {
	server, err := c.StackitClient.CreateServer(ctx, request)
	id := ""
	if err == nil {
		id = server.ID
	}
	c.meters.post(id, err)
	return server, err
}

// DeleteServer implements StackitClient.
func (c *meteredClient) DeleteServer(ctx context.Context, serverID string) error {
	err := c.StackitClient.DeleteServer(ctx, serverID)
	if err == nil {
		c.meters.deletionAccepted(serverID)
	}
	return err
}

// ListServers implements StackitClient.
func (c *meteredClient) ListServers(ctx context.Context, labels map[string]string) ([]Server, error) {
	servers, err := c.StackitClient.ListServers(ctx, labels)
	if err == nil {
		c.meters.listed(c.projectID, c.region, labels, servers)
	}
	return servers, err
}
