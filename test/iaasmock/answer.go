// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"strconv"
)

// answer is a response to write. With drop the connection is reset instead; with half it
// ends in the body.
type answer struct {
	status      int
	contentType string
	body        []byte
	header      http.Header
	drop, half  bool
	// replaced is true if a Fault's answer is sent.
	replaced bool
}

func errorAnswer(e *apiError) answer {
	return jsonAnswer(e.Code, e)
}

func jsonAnswer(status int, body any) answer {
	encoded, err := json.Marshal(body)
	if err != nil {
		encoded, _ = json.Marshal(newError(http.StatusInternalServerError, "encode the answer: %v", err))
		status = http.StatusInternalServerError
	}
	return answer{status: status, contentType: jsonContentType, body: append(encoded, '\n')}
}

func writeAnswer(w http.ResponseWriter, requestID string, reply answer) {
	header := w.Header()
	header.Set(requestIDHeader, requestID)
	if reply.contentType != "" {
		header.Set("Content-Type", reply.contentType)
	}
	maps.Copy(header, reply.header)
	if reply.half {
		header.Set("Content-Length", strconv.Itoa(len(reply.body)))
		w.WriteHeader(reply.status)
		_, _ = w.Write(reply.body[:len(reply.body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // net/http ends the connection
	}
	w.WriteHeader(reply.status)
	_, _ = w.Write(reply.body)
}

// dropConnection resets the connection, so that the client cannot mistake it for an empty
// answer.
func dropConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2: net/http resets the stream
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// requestIDHeader names a request to the client.
const requestIDHeader = "X-Request-Id"
