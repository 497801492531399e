// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// Document is the official API document.
type Document struct {
	// requests is the unchanged document, answers the amended one.
	requests, answers routers.Router
}

// Load reads the document from a file.
func Load(path string) (*Document, error) {
	requests, err := load(path, func(*openapi3.T) error { return nil })
	if err != nil {
		return nil, err
	}
	answers, err := load(path, amend)
	if err != nil {
		return nil, err
	}
	return &Document{requests: requests, answers: answers}, nil
}

func load(path string, change func(*openapi3.T) error) (routers.Router, error) {
	document, err := openapi3.NewLoader().LoadFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the API document: %w", err)
	}
	// Its server has a variable that the URL does not use, which is not valid; without
	// servers every host matches. One of its examples is wrong, too.
	document.Servers = nil
	if err := document.Validate(context.Background(), openapi3.DisableExamplesValidation()); err != nil {
		return nil, fmt.Errorf("understand the API document: %w", err)
	}
	if err := change(document); err != nil {
		return nil, fmt.Errorf("amend the API document: %w", err)
	}
	return gorillamux.NewRouter(document)
}
