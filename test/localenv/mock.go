// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"errors"
	"net/http"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv/stack"
)

// mock is the stack.Cloud that serves an iaasmock.Cloud on a free port.
type mock struct {
	cloud *iaasmock.Cloud
	wrap  func(http.Handler) http.Handler

	server *http.Server
	url    string
	served chan struct{}
}

// Start implements stack.Cloud. The key is accepted for the mock's default project.
func (m *mock) Start(ended func(error)) (stack.API, error) {
	key, err := m.cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		return stack.API{}, err
	}
	listener, err := m.cloud.Listen("127.0.0.1:0")
	if err != nil {
		return stack.API{}, err
	}
	m.server = &http.Server{Handler: m.wrap(m.cloud), ReadHeaderTimeout: 10 * time.Second}
	m.url, m.served = "http://"+listener.Addr().String(), make(chan struct{})
	go func() {
		defer close(m.served)
		if err := m.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			ended(err)
		}
	}()
	return stack.API{
		Environment: []string{
			"STACKIT_IAAS_ENDPOINT=" + m.url,
			"STACKIT_TOKEN_BASEURL=" + m.url + "/token",
			"STACKIT_IDP_TOKEN_ENDPOINT=" + m.url + "/oauth/v2/token",
		},
		ServiceAccountKey: key,
	}, nil
}

// Stop implements stack.Cloud.
func (m *mock) Stop() {
	_ = m.server.Close()
	<-m.served
}
