// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

// What takes long is made once, and before any bubble, whose time would stand still
// for others who wait for it.
func TestMain(m *testing.M) {
	keys()
	_, _ = conformance.FromEnvironment()
	goleak.VerifyTestMain(m)
}

// testKeys are service-account keys, which every rig's cloud knows.
type testKeys struct{ first, rotated, secondProject []byte }

var keys = sync.OnceValue(func() testKeys {
	cloud := iaasmock.New()
	newKey := func(projectID string) []byte {
		key, err := cloud.NewServiceAccountKey(projectID)
		if err != nil {
			panic(err)
		}
		return key
	}
	return testKeys{newKey(iaasmock.DefaultProjectID), newKey(iaasmock.DefaultProjectID), newKey(iaasmock.SecondProjectID)}
})
