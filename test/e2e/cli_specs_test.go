// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// cliTimeout allows for building the CLI, and for its waits: it looks every 5 s.
const cliTimeout = 8 * time.Minute

var _ = Describe("The stackit CLI", func() {
	It("shows the server of a Machine", func(ctx SpecContext) {
		c := sharedCluster(ctx)
		stackit := newCLI(c.env.CloudURL())
		stackit.authenticate(ctx, c.env.ServiceAccountKey())
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(providerSpec{"allowedAddresses": []any{"100.96.0.0/11"}}))
		c.createMachine(ctx, "seen-by-cli", "small")
		Eventually(ctx, c.machine("seen-by-cli")).WithTimeout(upTimeout).WithPolling(poll).Should(havePhase(v1alpha1.MachineRunning))
		machine, err := c.machine("seen-by-cli")(ctx)
		Expect(err).NotTo(HaveOccurred())

		var found []cliServer
		stackit.read(ctx, &found, "server", "list", "--label-selector", "kubernetes.io/machine=seen-by-cli,"+clusterLabel+"="+clusterName)
		Expect(found).To(HaveLen(1))
		Expect(machine.Spec.ProviderID).To(HaveSuffix("/" + found[0].ID))
		Expect(stackit.run(ctx, "server", "list", "--label-selector", "kubernetes.io/machine=another")).NotTo(ContainSubstring("seen-by-cli"))

		var server cliServer
		stackit.read(ctx, &server, "server", "describe", found[0].ID)
		Expect(server).To(And(
			HaveField("Name", "seen-by-cli"), HaveField("Status", iaasmock.StatusActive),
			HaveField("PowerStatus", "RUNNING"), HaveField("MachineType", iaasmock.DefaultMachineType),
			HaveField("Labels", Equal(map[string]string{clusterLabel: clusterName,
				"kubernetes.io/machine": "seen-by-cli", "kubernetes.io/machineclass": "small"})),
			HaveField("NICs", HaveLen(1)), HaveField("BootVolume.DeleteOnTermination", true)))
		Expect(stackit.run(ctx, "server", "describe", server.ID)).To(MatchRegexp(`NAME +│ seen-by-cli`))

		var nics []cliNIC
		stackit.read(ctx, &nics, "network-interface", "list")
		Expect(nics).To(ContainElement(And(HaveField("Device", server.ID), HaveField("ID", server.NICs[0].NICID),
			HaveField("IPv4", server.NICs[0].IPv4), HaveField("AllowedAddresses", ConsistOf("100.96.0.0/11")))))
		var volumes []cliVolume
		stackit.read(ctx, &volumes, "volume", "list")
		Expect(volumes).To(ContainElement(And(HaveField("ServerID", server.ID), HaveField("ID", server.BootVolume.ID),
			HaveField("Status", iaasmock.VolumeAttached), HaveField("Size", BeEquivalentTo(20)))))
	}, NodeTimeout(cliTimeout))

	It("takes a server of the mock through its life", func(ctx SpecContext) {
		cloud := iaasmock.New(iaasmock.WithBootDuration(time.Second), iaasmock.WithDeleteDuration(time.Second),
			iaasmock.WithActionDuration(time.Second))
		api := httptest.NewServer(cloud)
		DeferCleanup(api.Close)
		stackit := newCLI(api.URL)
		key, err := cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
		Expect(err).NotTo(HaveOccurred())
		_, err = stackit.try(ctx, stackit.path, "server", "list")
		Expect(err).To(MatchError(ContainSubstring("not authenticated")))
		stackit.authenticate(ctx, key)

		var server cliServer
		stackit.read(ctx, &server, "server", "create", "--assume-yes", "--name", "by-hand",
			"--machine-type", iaasmock.DefaultMachineType, "--network-id", iaasmock.DefaultNetworkID,
			"--boot-volume-source-type", "image", "--boot-volume-source-id", iaasmock.DefaultImageID,
			"--boot-volume-size", "20", "--boot-volume-delete-on-termination", "--labels", "team=platform")
		expectStatus := func(status string) {
			GinkgoHelper()
			var listed []cliServer
			stackit.read(ctx, &listed, "server", "list", "--label-selector", "team=platform")
			Expect(listed).To(ConsistOf(And(HaveField("ID", server.ID), HaveField("Status", status))))
		}
		expectStatus(iaasmock.StatusActive)
		Expect(stackit.run(ctx, "server", "volume", "list", "--server-id", server.ID)).To(ContainSubstring(server.Volumes[0]))
		stackit.run(ctx, "server", "stop", server.ID, "--assume-yes")
		expectStatus(iaasmock.StatusInactive)
		stackit.run(ctx, "server", "start", server.ID, "--assume-yes")
		expectStatus(iaasmock.StatusActive)

		before := cloud.Volumes()
		stackit.run(ctx, "server", "delete", server.ID, "--assume-yes")
		Expect(cloud.Servers()).To(BeEmpty())
		Expect(cloud.Volumes()).To(HaveLen(len(before)-1), "the boot volume is to go with its server")
		_, err = stackit.try(ctx, stackit.path, "server", "describe", server.ID)
		Expect(err).To(MatchError(ContainSubstring("server not found")))
		Expect(stackit.run(ctx, "server", "list")).To(ContainSubstring(`No servers found for project "default"`))
		Expect(cloud.CallCounts()).NotTo(HaveKey("Unknown"), "calls that the mock does not know")
	}, NodeTimeout(cliTimeout))

	It("reads what the mock's catalogue has", func(ctx SpecContext) {
		cloud := iaasmock.New()
		api := httptest.NewServer(cloud)
		DeferCleanup(api.Close)
		stackit := newCLI(api.URL)
		key, err := cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
		Expect(err).NotTo(HaveOccurred())
		stackit.authenticate(ctx, key)
		for command, shown := range map[string]string{
			"quota list":                        "vcpus?",
			"server machine-type list":          iaasmock.DefaultMachineType,
			"image list":                        iaasmock.DefaultImageID,
			"network list":                      iaasmock.DefaultNetworkID,
			"security-group list":               iaasmock.DefaultSecurityGroupID,
			"key-pair list":                     iaasmock.DefaultKeypairName,
			"affinity-group list":               iaasmock.DefaultAffinityGroupID,
			"volume performance-class list":     "storage_premium_perf1",
			"image describe":                    iaasmock.DefaultImageID,
			"server machine-type describe":      iaasmock.DefaultMachineType,
			"network describe":                  iaasmock.DefaultNetworkID,
			"security-group describe":           iaasmock.DefaultSecurityGroupID,
			"key-pair describe":                 iaasmock.DefaultKeypairName,
			"affinity-group describe":           iaasmock.DefaultAffinityGroupID,
			"volume describe":                   iaasmock.DefaultVolumeID,
			"volume performance-class describe": "storage_premium_perf1",
		} {
			args := strings.Fields(command)
			if args[len(args)-1] == "describe" {
				args = append(args, shown)
			}
			Expect(stackit.run(ctx, args...)).To(MatchRegexp("(?i)"+shown), command)
		}
		Expect(cloud.CallCounts()).NotTo(HaveKey("Unknown"), "calls that the mock does not know")
	}, NodeTimeout(cliTimeout))

	It("does what the mock's README says", func(ctx SpecContext) {
		readme, err := os.ReadFile("../iaasmock/README.md")
		Expect(err).NotTo(HaveOccurred())
		section := regexp.MustCompile("(?s)\n## With the stackit CLI\n.*?\n```sh\n(export .*?)```").FindStringSubmatch(string(readme))
		Expect(section).NotTo(BeNil(), "the README has no examples with the CLI")

		cloud := iaasmock.New(iaasmock.WithoutAuthentication(),
			iaasmock.WithBootDuration(time.Second), iaasmock.WithDeleteDuration(time.Second))
		api := httptest.NewServer(cloud)
		DeferCleanup(api.Close)
		script := strings.ReplaceAll(section[1], "http://127.0.0.1:8080", api.URL)
		printed, err := newCLI(api.URL).try(ctx, "sh", "-euc", script)
		Expect(err).NotTo(HaveOccurred())
		Expect(printed).To(MatchRegexp(`(?s)ACTIVE.*10\.0\.0\.3.*team: platform`))
		Expect(cloud.History()).To(And(HaveField("ServersCreated", 1), HaveField("ServersDeleted", 1)))
	}, NodeTimeout(cliTimeout))
})
