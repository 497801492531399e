// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/probes/project"
)

// insideVariable tells the second run of this program that it is in a workspace.
const insideVariable = "INTEGRATION_SUITE_INSIDE"

// specs is how many cases the suite of the pinned MCM has.
const specs = 10

// TestControllers runs the suite: see the documentation of the package.
func TestControllers(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane: make test-integration")
	}
	if os.Getenv(insideVariable) != "" {
		runSuite(t)
		return
	}
	if err := localenv.Check(); err != nil {
		t.Fatal(err)
	}
	g := NewWithT(t)
	env, err := localenv.Start(t.Context(), localenv.WithoutManager(), localenv.WithoutSidecar(),
		localenv.WithProgress(func(line string) { t.Log(line) }),
		localenv.WithCloudOptions(iaasmock.WithBootDuration(2*time.Second), iaasmock.WithDeleteDuration(time.Second)))
	g.Expect(err).NotTo(HaveOccurred())
	defer env.Stop()
	before := attachments(env.Cloud())
	cloud := mockOf(env)
	if os.Getenv(project.EnvReal) != "" {
		cloud, err = realProject()
		g.Expect(err).NotTo(HaveOccurred())
		defer joinNodes(t, env)()
	}
	createSecret(t, env, cloud.Project)
	w := newWorkspace(t, env, cloud)

	report, err := w.run(t.Context())
	if err != nil {
		t.Fatalf("the suite failed: %v\n%s\n%s", err, report, w.logs())
	}
	g.Expect(env.Err()).NotTo(HaveOccurred(), "a part of the environment ended by itself")
	// Ginkgo succeeds as well when specs are skipped or none is found.
	g.Expect(report).To(MatchRegexp(`Ran %d of %d Specs`, specs, specs))
	if os.Getenv(project.EnvReal) != "" {
		return // what the run has left in a real project is the suite's to see
	}
	g.Expect(env.Cloud().History().ServersCreated).To(BeNumerically(">=", 11), "1 machine, 6 of a deployment, 4 rolled")
	g.Expect(env.Cloud().Servers()).To(BeEmpty())
	g.Expect(attachments(env.Cloud())).To(Equal(before))
}

// attachments are the IDs of all NICs and volumes, as the cloud itself knows them.
func attachments(cloud *iaasmock.Cloud) (ids []string) {
	for _, nic := range cloud.NICs() {
		ids = append(ids, nic.ID)
	}
	for _, volume := range cloud.Volumes() {
		ids = append(ids, volume.ID)
	}
	return ids
}

// createSecret makes the Secret of the suite's classes.
func createSecret(t *testing.T, env *localenv.Env, in project.Project) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "test-mc-secret", Namespace: env.Namespace()},
		Data: map[string][]byte{
			"projectId":         []byte(in.ID),
			"region":            []byte(in.Region),
			"networkId":         []byte(in.NetworkID),
			"serviceAccountKey": []byte(in.Key),
			"userData":          []byte("#cloud-config\nhostname: <<MACHINE_NAME>>\ntoken: <<BOOTSTRAP_TOKEN>>\n"),
		},
	}
	if err := env.Client().Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}
