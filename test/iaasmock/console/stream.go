// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

const (
	// sampleEvery is the interval at which a stream compares the state, heartbeatEvery
	// its longest silence. Both are measured by the mock's clock.
	sampleEvery    = 500 * time.Millisecond
	heartbeatEvery = 15 * time.Second
	// sendLimit is how long a client may take to read an event, in real time, so that a
	// suspended client does not block its handler for ever.
	sendLimit = 30 * time.Second
)

// Stream sends the state as server-sent events: a snapshot, then changes. It compares the
// state every 500 ms while the client is connected, because changes of state are computed
// from the clock and cause no event. It runs in the request's goroutine and ends with it.
func Stream(w http.ResponseWriter, r *http.Request, source Source) {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	stream := eventStream{to: w, controller: http.NewResponseController(w)}

	var known client
	lastSent := source.Now()
	for name := "snapshot"; ; name = "change" {
		news, changed := known.update(source)
		switch {
		case changed:
			if stream.send(name, news) != nil {
				return
			}
			lastSent = source.Now()
		case source.Now().Sub(lastSent) >= heartbeatEvery:
			if stream.beat() != nil {
				return
			}
			lastSent = source.Now()
		}
		if !source.Wait(r.Context(), sampleEvery) {
			return
		}
	}
}

// eventStream writes server-sent events.
type eventStream struct {
	to         io.Writer
	controller *http.ResponseController
}

func (s eventStream) send(name string, event any) error {
	encoded, err := json.Marshal(event)
	if err != nil {
		return err
	}
	return s.write("event: %s\ndata: %s\n\n", name, encoded)
}

// beat sends a comment, which clients ignore.
func (s eventStream) beat() error { return s.write(": still here\n\n") }

func (s eventStream) write(format string, args ...any) error {
	// Not every ResponseWriter has deadlines; those of net/http do.
	_ = s.controller.SetWriteDeadline(clock.RealClock{}.Now().Add(sendLimit))
	if _, err := fmt.Fprintf(s.to, format, args...); err != nil {
		return err
	}
	return s.controller.Flush()
}
