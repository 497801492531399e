// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

// bootVolumeSize is that of the servers, GB.
const bootVolumeSize = 20

// nobody is the ID of nothing.
const nobody = "00000000-0000-4000-8000-00000000dead"

// body returns what makes a server with the labels of a Machine, with these fields over it.
func (s *suite) body(name string, labels map[string]string, fields map[string]any) map[string]any {
	body := map[string]any{
		"name": name, "machineType": s.Settings.MachineType, "labels": labels,
		"networking": map[string]any{"networkId": s.Settings.NetworkID},
		"bootVolume": map[string]any{
			"size": bootVolumeSize, "deleteOnTermination": true,
			"source": map[string]any{"type": "image", "id": s.Settings.ImageID},
		},
	}
	if s.Settings.Zone != "" {
		body["availabilityZone"] = s.Settings.Zone
	}
	maps.Copy(body, fields)
	return body
}

// makeServer makes a server as the driver does, but with nothing of its code. After an answer
// from which nobody knows whether there is one, it looks for the server before it asks again.
func (s *suite) makeServer(ctx context.Context, name string, labels map[string]string, fields map[string]any) (string, error) {
	for {
		answer, err := s.api.Do(ctx, http.MethodPost, api.PathServers, s.body(name, labels, fields))
		var made api.Server
		switch {
		case err == nil && answer.Status == http.StatusCreated:
			err := json.Unmarshal(answer.Body, &made)
			return made.ID, err
		case err == nil && answer.Status < 500 && answer.Status != http.StatusTooManyRequests:
			return "", fmt.Errorf("POST of server %s answered %d %s", name, answer.Status, answer.Body)
		}
		if err := api.Pause(ctx, s.Settle); err != nil {
			return "", err
		}
		servers, err := s.api.Servers(ctx, mark.Selector(s.name))
		if err != nil {
			return "", err
		}
		if at := slices.IndexFunc(servers, func(found api.Server) bool { return found.Name == name }); at >= 0 {
			return servers[at].ID, nil
		}
	}
}

// server returns a function that reads a server, for eventually.
func (s *suite) server(id string) func(context.Context) (api.Server, error) {
	return func(ctx context.Context) (api.Server, error) {
		server, err := s.api.Server(ctx, id)
		if err == nil && server == nil {
			err = errors.New("GET of the server answers 404")
		}
		if err != nil {
			return api.Server{}, err
		}
		return *server, nil
	}
}

// ids returns those of the servers that a list with the selector shows.
func (s *suite) ids(ctx context.Context, selector string) ([]string, error) {
	servers, err := s.api.Servers(ctx, selector)
	var ids []string
	for _, server := range servers {
		ids = append(ids, server.ID)
	}
	return ids, err
}
