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
	// sampleEvery is how often a stream looks at the state, heartbeatEvery how
	// long it is silent at most. Both go by the cloud's clock.
	sampleEvery    = 500 * time.Millisecond
	heartbeatEvery = 15 * time.Second
	// sendLimit is how long a client may take to read an event, in real time:
	// one that has fallen asleep must not hold a handler for ever.
	sendLimit = 30 * time.Second
)

// Stream streams the state as server-sent events: a snapshot, then what changes. Nobody announces
// a change, since state follows from the clock; the stream looks while its client
// is there. It runs in the request's own goroutine and ends with it.
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

// beat is a comment, which clients ignore.
func (s eventStream) beat() error { return s.write(": still here\n\n") }

func (s eventStream) write(format string, args ...any) error {
	// Not every ResponseWriter has deadlines; those of net/http do.
	_ = s.controller.SetWriteDeadline(clock.RealClock{}.Now().Add(sendLimit))
	if _, err := fmt.Fprintf(s.to, format, args...); err != nil {
		return err
	}
	return s.controller.Flush()
}
