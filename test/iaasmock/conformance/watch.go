// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"net/http"
	"os"
	"sync"
)

// Variable names the file with the official API document.
const Variable = "IAAS_OPENAPI"

// TB is what Watch needs of a testing.TB or GinkgoTInterface.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
}

// shown is the number of deviations of one Watch that are printed.
const shown = 10

// Watch returns a handler that calls next and checks every call; next itself if Variable
// is not set. Deviations fail the test in t.Cleanup, so call Watch before you register
// the server's Close. A document that cannot be read fails the test, too.
func Watch(t TB, next http.Handler) http.Handler {
	t.Helper()
	document, err := FromEnvironment()
	if err != nil {
		t.Errorf("%s: %v", Variable, err)
		return next
	}
	if document == nil {
		return next
	}
	found := &findings{}
	t.Cleanup(func() {
		if text := found.text(); text != "" {
			t.Errorf("%s", text)
		}
	})
	return document.Handler(next, found.add)
}

// FromEnvironment returns the document that Variable names; nil if it is not set. It
// reads the document once in a process.
var FromEnvironment = sync.OnceValues(func() (*Document, error) {
	path := os.Getenv(Variable)
	if path == "" {
		return nil, nil
	}
	return Load(path)
})

// findings are the deviations of one test.
type findings struct {
	mu    sync.Mutex
	first []error
	more  int
}

func (f *findings) add(deviation error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.first) == shown {
		f.more++
		return
	}
	f.first = append(f.first, deviation)
}

func (f *findings) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.first) == 0 {
		return ""
	}
	text := fmt.Sprintf("calls deviate from the API document (%d):", len(f.first)+f.more)
	for _, deviation := range f.first {
		text += "\n- " + deviation.Error()
	}
	return text
}
