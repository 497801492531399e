// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/test/integration/common"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/integration/provider"
)

const (
	// timeout is for each single wait of the suite, in seconds.
	timeout = 300
	// polling is how often it looks, in seconds.
	polling = 1
)

// runSuite runs the suite in the present environment and folder.
func runSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	suite := common.NewIntegrationTestFramework(&provider.ResourcesTrackerImpl{}, timeout, polling)
	BeforeSuite(suite.SetupBeforeSuite)
	AfterSuite(suite.Cleanup)
	Describe("The controllers", func() {
		suite.BeforeEachCheck()
		suite.ControllerTests()
	})
	RunSpecs(t, "Integration suite of machine-controller-manager")
}
