// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"net/http"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// statusForm is the form of states. The API document lists some; SetServerStatus accepts
// any.
var statusForm = regexp.MustCompile(`^[A-Z][A-Z_]{0,62}$`)

// serverDetails is the answer of GET /admin/servers/{id}: everything but the content of
// the user data, which may hold credentials.
type serverDetails struct {
	Server
	// UserDataSize is in bytes, decoded.
	UserDataSize int         `json:"userDataSize"`
	NICs         []NIC       `json:"nics"`
	Volumes      []Volume    `json:"volumes"`
	Timeline     []milestone `json:"timeline"`
}

// milestone is a state of a server and the time when it began, or will begin.
type milestone struct {
	At           time.Time `json:"at"`
	Status       string    `json:"status"`
	ErrorMessage string    `json:"errorMessage,omitempty"`
	// Ahead is true for a scheduled state not yet reached.
	Ahead bool `json:"ahead,omitempty"`
}

// gone is the last entry of a deleted server's timeline. The API has no such state.
const gone = "GONE"

func (c *Cloud) serveServer(w http.ResponseWriter, r *http.Request) {
	details, ok := c.serverDetails(r.PathValue("id"))
	if !ok {
		refuse(w, notFound(namedServer.what))
		return
	}
	writeAdmin(w, http.StatusOK, details)
}

func (c *Cloud) serverDetails(id string) (details serverDetails, ok bool) {
	c.locked(func(now time.Time) {
		var s *server
		if s, ok = c.servers.get(id); !ok {
			return
		}
		details = serverDetails{
			Server: s.viewAt(now).clone(), UserDataSize: len(s.UserData),
			NICs: []NIC{}, Volumes: []Volume{}, Timeline: s.timeline(now),
		}
		details.UserData = nil
		for _, nic := range c.serverNICs(s) {
			details.NICs = append(details.NICs, nic.viewAt(now).clone())
		}
		for _, volumeID := range s.VolumeIDs {
			if volume, attached := c.volumes.get(volumeID); attached {
				details.Volumes = append(details.Volumes, volume.clone())
			}
		}
	})
	return details, ok
}

// timeline returns the server's states in order, scheduled ones included.
func (s *server) timeline(now time.Time) []milestone {
	line := []milestone{{At: s.CreatedAt, Status: StatusCreating}}
	for _, o := range s.transitions {
		line = append(line, milestone{At: o.at, Status: o.status, ErrorMessage: o.message, Ahead: o.at.After(now)})
	}
	if !s.goneAt.IsZero() {
		line = append(line, milestone{At: s.goneAt, Status: gone, Ahead: true})
	}
	return line
}

// serveSetStatus is SetServerStatus.
func (c *Cloud) serveSetStatus(w http.ResponseWriter, r *http.Request) {
	var wanted struct {
		Status       string `json:"status"`
		ErrorMessage string `json:"errorMessage"`
	}
	if err := readAction(r, &wanted); err != nil {
		refuse(w, err)
		return
	}
	if !statusForm.MatchString(wanted.Status) {
		refuse(w, badRequest("status: invalid %q; want a state such as %s", wanted.Status, StatusError))
		return
	}
	if c.SetServerStatus(r.PathValue("id"), wanted.Status, wanted.ErrorMessage) != nil {
		refuse(w, notFound(namedServer.what))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// serveSetConsoleLog is SetConsoleLog.
func (c *Cloud) serveSetConsoleLog(w http.ResponseWriter, r *http.Request) {
	var wanted struct {
		Log   string          `json:"log"`
		Delay metav1.Duration `json:"delay"`
	}
	if err := readAction(r, &wanted); err != nil {
		refuse(w, err)
		return
	}
	if c.SetConsoleLog(r.PathValue("id"), wanted.Log, wanted.Delay.Duration) != nil {
		refuse(w, notFound(namedServer.what))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// serveSetMaintenanceWindow is SetMaintenanceWindow; null takes the window away.
func (c *Cloud) serveSetMaintenanceWindow(w http.ResponseWriter, r *http.Request) {
	var window *MaintenanceWindow
	if err := readAction(r, &window); err != nil {
		refuse(w, err)
		return
	}
	if c.SetMaintenanceWindow(r.PathValue("id"), window) != nil {
		refuse(w, notFound(namedServer.what))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// serveStop does what StopServer does, without faults and without counting a call.
func (c *Cloud) serveStop(w http.ResponseWriter, r *http.Request) {
	found, ok := c.Server(r.PathValue("id"))
	if !ok {
		refuse(w, notFound(namedServer.what))
		return
	}
	vars := map[string]string{"projectId": found.ProjectID, "region": found.Region, "serverId": found.ID}
	if _, err := c.stopServer(&request{Request: r, vars: vars}); err != nil {
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// serveRemove is RemoveServer.
func (c *Cloud) serveRemove(w http.ResponseWriter, r *http.Request) {
	if c.RemoveServer(r.PathValue("id")) != nil {
		refuse(w, notFound(namedServer.what))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
