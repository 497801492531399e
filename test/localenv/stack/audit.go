// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
)

// auditPolicy has kube-apiserver write down what service accounts ask for. The others here
// are members of system:masters, who may do everything. A watch is written down when it
// begins: it ends with the environment.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    userGroups: ["system:serviceaccounts"]
  - level: None
`

// auditLog is the file in the folder of an API server's credentials.
const auditLog = "audit.log"

// Request is what a service account asked of an API server.
type Request struct {
	// User is system:serviceaccount:NAMESPACE:NAME.
	User string
	Verb string
	// Group is empty for the core API, Subresource for an object as a whole, Namespace for
	// what is in none, and Name for a list and where the server makes the name.
	Group, Resource, Subresource, Namespace, Name string
	// Code is the HTTP status code of the answer.
	Code int
}

func readAuditLog(log io.Reader) ([]Request, error) {
	var requests []Request
	for decoder := json.NewDecoder(bufio.NewReader(log)); ; {
		var event struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef *struct {
				APIGroup, Resource, Subresource, Namespace, Name string
			}
			ResponseStatus struct{ Code int }
		}
		err := decoder.Decode(&event)
		// The last line may be on its way.
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return requests, nil
		}
		if err != nil {
			return nil, err
		}
		if object := event.ObjectRef; object != nil {
			requests = append(requests, Request{
				User: event.User.Username, Verb: event.Verb,
				Group: object.APIGroup, Resource: object.Resource, Subresource: object.Subresource,
				Namespace: object.Namespace, Name: object.Name, Code: event.ResponseStatus.Code,
			})
		}
	}
}
