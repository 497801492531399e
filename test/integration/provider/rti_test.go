// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/gomega"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	cluster = "shoot--test--integration"
	remove  = 5 * time.Second
)

// cloud is a mock with a clock that stands, and what the suite hands the tracker.
type cloud struct {
	*iaasmock.Cloud
	clock  *clocktesting.FakeClock
	class  *v1alpha1.MachineClass
	secret map[string][]byte
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	mock := iaasmock.New(iaasmock.WithClock(clock), iaasmock.WithDeleteDuration(remove))
	server := httptest.NewServer(mock)
	t.Cleanup(server.Close)
	t.Setenv(spi.EnvIaaSEndpoint, server.URL)
	t.Setenv(spi.EnvTokenURL, server.URL+"/oauth/v2/token")
	key, err := mock.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		t.Fatal(err)
	}
	return &cloud{Cloud: mock, clock: clock, class: newClass(cluster), secret: map[string][]byte{
		"projectId":         []byte(iaasmock.DefaultProjectID),
		"region":            []byte(iaasmock.DefaultRegion),
		"serviceAccountKey": key,
	}}
}

func newClass(cluster string) *v1alpha1.MachineClass {
	return &v1alpha1.MachineClass{
		ObjectMeta:   metav1.ObjectMeta{Name: "test-mc-v1"},
		ProviderSpec: runtime.RawExtension{Raw: []byte(`{"labels":{"` + ClusterLabel + `":"` + cluster + `"}}`)},
	}
}

func (c *cloud) createServer(t *testing.T, tracker *ResourcesTrackerImpl, cluster string, keepDisk bool) (id string) {
	t.Helper()
	network, size, goes := iaasmock.DefaultNetworkID, int64(20), !keepDisk
	payload := iaas.NewCreateServerPayload(iaasmock.DefaultMachineType, "machine", iaas.CreateServerPayloadAllOfNetworking{
		CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: &network},
	})
	payload.Labels = map[string]any{ClusterLabel: cluster}
	payload.BootVolume = &iaas.BootVolume{
		Size: &size, DeleteOnTermination: &goes, Source: iaas.NewBootVolumeSource(iaasmock.DefaultImageID, "image"),
	}
	server, err := tracker.api.CreateServer(t.Context(), tracker.projectID, tracker.region).CreateServerPayload(*payload).
		Execute()
	if err != nil {
		t.Fatal(err)
	}
	return server.GetId()
}

func TestOrphans(t *testing.T) {
	for name, row := range map[string]struct {
		cluster string
		// keepDisk leaves the boot volume behind when the server goes.
		keepDisk bool
		// keepNIC makes a NIC by hand.
		keepNIC bool
		// waited is how long ago the server's deletion was asked for; negative: never.
		waited time.Duration
		// answer replaces the API's, by operation.
		operation, answer string
		left              bool
	}{
		"a server that nobody deletes":   {cluster: cluster, waited: -1, left: true},
		"a server that is being deleted": {cluster: cluster, waited: remove / 2, left: true},
		"a server that is gone":          {cluster: cluster, waited: remove},
		"a boot volume of a gone server": {cluster: cluster, waited: remove, keepDisk: true, left: true},
		"a boot volume of anybody's":     {cluster: "another", waited: remove, keepDisk: true, left: true},
		"a NIC without a server":         {cluster: cluster, waited: remove, keepNIC: true, left: true},
		"servers cannot be listed":       {cluster: cluster, waited: remove, operation: "ListServers", left: true},
		"NICs cannot be listed":          {cluster: cluster, waited: remove, operation: "ListProjectNICs", left: true},
		"volumes cannot be listed":       {cluster: cluster, waited: remove, operation: "ListVolumes", left: true},
		"the list of servers is no list": {cluster: cluster, waited: remove, operation: "ListServers", answer: "{}",
			left: true},
		"the list of NICs is no list": {cluster: cluster, waited: remove, operation: "ListProjectNICs", answer: "{}",
			left: true},
		"the list of volumes is no list": {cluster: cluster, waited: remove, operation: "ListVolumes", answer: "{}",
			left: true},
		"a fault of what does not matter": {cluster: cluster, waited: remove, operation: "ListNetworks"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newCloud(t)
			tracker := &ResourcesTrackerImpl{}
			g.Expect(tracker.InitializeResourcesTracker(c.class, c.secret, cluster)).To(Succeed())
			g.Expect(tracker.IsOrphanedResourcesAvailable()).To(BeFalse(), "before anything was made")

			id := c.createServer(t, tracker, row.cluster, row.keepDisk)
			if row.waited >= 0 {
				g.Expect(tracker.api.DeleteServer(t.Context(), tracker.projectID, tracker.region, id).Execute()).To(Succeed())
				c.clock.Step(row.waited)
			}
			if row.keepNIC {
				_, err := tracker.api.CreateNic(t.Context(), tracker.projectID, tracker.region, iaasmock.DefaultNetworkID).
					CreateNicPayload(*iaas.NewCreateNicPayload()).Execute()
				g.Expect(err).NotTo(HaveOccurred())
			}
			if row.operation != "" {
				status := http.StatusForbidden
				if row.answer != "" {
					status = http.StatusOK
				}
				c.Inject(iaasmock.Fault{Operation: row.operation, Status: status, Body: row.answer})
			}
			g.Expect(tracker.IsOrphanedResourcesAvailable()).To(Equal(row.left))
		})
	}
}

func TestServersOfAnotherClusterAreNotOurs(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(t)
	another := &ResourcesTrackerImpl{}
	g.Expect(another.InitializeResourcesTracker(newClass("another"), c.secret, "another")).To(Succeed())
	c.createServer(t, another, "another", false)

	ours := &ResourcesTrackerImpl{}
	g.Expect(ours.InitializeResourcesTracker(c.class, c.secret, cluster)).To(Succeed())
	g.Expect(ours.IsOrphanedResourcesAvailable()).To(BeFalse())
	g.Expect(another.IsOrphanedResourcesAvailable()).To(BeTrue())
	g.Expect((&ResourcesTrackerImpl{}).InitializeResourcesTracker(newClass("another"), c.secret, "another")).
		To(MatchError(ContainSubstring("has servers before the run")))
}

func TestWhatTheTrackerCannotWorkWith(t *testing.T) {
	c := newCloud(t)
	for name, row := range map[string]struct {
		class  *v1alpha1.MachineClass
		secret map[string][]byte
		want   string
	}{
		"a class without the cluster label": {newClass(""), c.secret, "must be the cluster's name"},
		"a class of another cluster":        {newClass("another"), c.secret, "must be the cluster's name"},
		"a Secret without a key":            {c.class, map[string][]byte{"projectId": c.secret["projectId"]}, "key"},
		"a providerSpec that is no object": {&v1alpha1.MachineClass{ProviderSpec: runtime.RawExtension{Raw: []byte("[]")}},
			c.secret, "providerSpec"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect((&ResourcesTrackerImpl{}).InitializeResourcesTracker(row.class, row.secret, cluster)).
				To(MatchError(ContainSubstring(row.want)))
		})
	}
}
