// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

// Note notes the NICs and the boot volume of one of the suite's servers, so that they are
// found if the API leaves them behind. The server is one with details.
func (s Sweeper) Note(server *api.Server) (ours bool) {
	run, ours := s.Known.Whose(server.ID, server.Name, server.Labels)
	if !ours {
		return false
	}
	for _, nic := range server.NICs {
		s.Known.Part(run, server.ID, nic.ID)
	}
	if server.BootVolume.ID != "" {
		s.Known.Part(run, server.ID, server.BootVolume.ID)
	}
	return true
}

// Tag notes the parts of a server, and gives them its labels and its name, so that they are
// found after this process, too. What has somebody else's name or cluster stays as it is. Tag
// returns how the API took the labels, for each kind; the error says that it may take them
// later.
func (s Sweeper) Tag(ctx context.Context, server *api.Server) (map[string]string, error) {
	if !s.Note(server) {
		return nil, nil
	}
	t := tagging{Sweeper: s, server: server, took: map[string]string{}}
	if len(server.NICs) == 0 {
		t.took["NIC"] = "not tried: the server shows none"
	}
	if server.BootVolume.ID == "" {
		t.took["volume"] = "not tried: the server shows none"
	}
	var problems []error
	for _, shown := range server.NICs {
		nic, err := s.API.NIC(ctx, shown.ID)
		if err == nil && nic == nil {
			t.took["NIC"] = "not tried: GET answers 404"
		}
		if nic != nil {
			err = t.tag(ctx, "NIC", s.API.PathNICs()+"/"+nic.ID, nic.ID, nic.Name, nic.Labels)
		}
		problems = append(problems, err)
	}
	if id := server.BootVolume.ID; id != "" {
		volume, err := s.API.Volume(ctx, id)
		if err == nil && volume == nil {
			t.took["volume"] = "not tried: GET answers 404"
		}
		if volume != nil {
			err = t.tag(ctx, "volume", api.PathVolumes+"/"+volume.ID, volume.ID, volume.Name, volume.Labels)
		}
		problems = append(problems, err)
	}
	return t.took, errors.Join(problems...)
}

// tagging is that of one server.
type tagging struct {
	Sweeper

	server *api.Server
	took   map[string]string
}

// tag gives one part its marks, unless it has them: with keys with a slash or, where the API
// refuses them, with plain ones.
func (t tagging) tag(ctx context.Context, kind, path, id, name string, labels api.Labels) error {
	if _, marked := mark.RunOf(name, labels); marked {
		return nil
	}
	run, ours := t.Known.Whose(id, name, labels)
	if !ours {
		t.took[kind] = "not tried: it has a name or a cluster of somebody else"
		return nil
	}
	wanted := mark.Labels(run, t.server.Labels.Get(provider.StackitMachineLabel), t.server.Labels.Get(provider.StackitMachineClassLabel))
	first, err := t.patch(ctx, path, wanted)
	if err != nil || first < http.StatusBadRequest {
		t.took[kind] = fmt.Sprintf("keys with dots and a slash: %d", first)
		return err
	}
	plain := map[string]string{}
	for key, value := range wanted {
		plain[mark.Plain(key)] = value
	}
	second, err := t.patch(ctx, path, plain)
	t.took[kind] = fmt.Sprintf("keys with dots and a slash: %d, without: %d", first, second)
	return err
}

// patch returns how the API took the labels. The error says that it did not decide.
func (t tagging) patch(ctx context.Context, path string, labels map[string]string) (status int, err error) {
	answer, err := t.API.Do(ctx, http.MethodPatch, path, map[string]any{"name": t.server.Name, "labels": labels})
	undecided := answer.Status == http.StatusConflict || answer.Status == http.StatusTooManyRequests || answer.Status >= http.StatusInternalServerError
	if err == nil && undecided {
		err = fmt.Errorf("PATCH %s answered %d", path, answer.Status)
	}
	return answer.Status, err
}
