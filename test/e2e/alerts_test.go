// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/monitoring"
)

const (
	// alertTimeout is for one scenario.
	alertTimeout = 90 * time.Second
	// longEnough is how many scrapes a scenario may take.
	longEnough = int(alertTimeout / scrapeInterval)
)

// preset returns a fault of the mock by its name.
func preset(name string) iaasmock.Fault {
	GinkgoHelper()
	for _, preset := range iaasmock.Presets() {
		if preset.Name == name {
			return preset.Fault
		}
	}
	Fail("no preset " + name)
	return iaasmock.Fault{}
}

// Each scenario makes several troubles at once, and waits until their alerts fire, and no others: here on
// what a sidecar really shows. When each alert fires and when not, test/monitoring tests on made series.
var _ = Describe("Alerts", Ordered, ContinueOnFailure, longest, func() {
	var (
		c *cluster
		// spare are the Machines that run, for the scenarios to delete.
		spare []*v1alpha1.Machine
		seen  = map[string]bool{}
		// login is the folder with the sidecar's kubeconfig and token for the target cluster.
		login string
	)

	BeforeAll(func(ctx SpecContext) {
		const machines = 7
		login = GinkgoT().TempDir()
		c = newCluster(startEnvironment(ctx, localenv.WithoutSidecar(), localenv.WithSidecarArgs(
			// Lists of this mock do not lag.
			"--stackit-settle=2s", "--target-kubeconfig="+filepath.Join(login, "kubeconfig"))))
		c.createTargetLogin(ctx, login)
		Expect(c.env.StartSidecar(ctx)).To(Succeed())
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
		for i := range machines {
			// Machines of one cluster share their reads. Of several, there are enough
			// calls in the few seconds of a window.
			class := fmt.Sprintf("spare-%d", i)
			c.createClass(ctx, class, specWith(providerSpec{"labels": map[string]any{clusterLabel: class}}))
			spare = append(spare, c.createMachine(ctx, fmt.Sprintf("spare-%03d-x", i), class))
		}
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(machines))
	}, NodeTimeout(5*time.Minute))

	// deleteSpare deletes so many Machines that run, and does not wait for it.
	deleteSpare := func(ctx context.Context, count int) {
		GinkgoHelper()
		for _, machine := range spare[:count] {
			Expect(c.Delete(ctx, machine)).To(Succeed())
		}
		spare = spare[count:]
	}

	// startSeen is startScrapes, and notes which metrics were seen.
	startSeen := func(ctx context.Context) *scrapes {
		GinkgoHelper()
		// A scrape may show Machines' phases without mcm_machine_info, which MCM sets during scrapes:
		// that of a process that has just read them. It must not stand for the quiet time.
		Eventually(ctx, func() (float64, error) {
			samples, err := readMetrics(ctx, c.env.SidecarMetricsURL())
			return measured(samples).sum("mcm_machine_info"), err
		}).WithTimeout(upTimeout).WithPolling(poll).ShouldNot(BeZero(), "no Machine is shown")
		s := startScrapes(c.env.SidecarMetricsURL)
		DeferCleanup(func() { maps.Copy(seen, s.names()) })
		Expect(s.expectFired(ctx, newPromtool())).To(Succeed(), "before")
		return s
	}

	It("fire on what an orphan run finds, a key and a token that expire, and restarts", func(ctx SpecContext) {
		s := startSeen(ctx)
		By("making a second server for a Machine")
		for range 2 {
			c.createServer(ctx, "two-servers", "small")
		}
		c.createMachine(ctx, "two-servers", "small")
		c.awaitPhase(ctx, "two-servers", v1alpha1.MachineRunning)

		By("making a server of nobody's, one whose label is not its name, and one with maintenance tomorrow")
		begins := time.Now().Add(20 * time.Hour).UTC()
		window := &iaasmock.MaintenanceWindow{Status: "PLANNED", StartsAt: begins, EndsAt: begins.Add(time.Hour)}
		maintained := c.env.Cloud().Servers()[0].ID
		Expect(c.env.Cloud().SetMaintenanceWindow(maintained, window)).To(Succeed())
		nobodys := c.createServer(ctx, "nobodys", "small")
		edited := c.createServer(ctx, "edited", "small")
		_, err := c.api().UpdateServer(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion, edited).
			UpdateServerPayload(iaas.UpdateServerPayload{Labels: map[string]any{clusterLabel: clusterName,
				provider.StackitMachineLabel: "another", provider.StackitMachineClassLabel: "small"}}).Execute()
		Expect(err).NotTo(HaveOccurred())

		By("restarting the sidecar with a key that expires: an orphan run is the first thing that it does")
		c.setKeyExpiry(ctx, time.Now().Add(10*24*time.Hour))
		c.writeTargetToken(ctx, login, 7*24*time.Hour+time.Second)
		for range 3 {
			c.restartSidecar(ctx)
			Eventually(ctx, func() bool { // or the process that has counted it would end before it is scraped
				server, exists := c.env.Cloud().Server(nobodys)
				return !exists || server.Status == iaasmock.StatusDeleting
			}).WithTimeout(upTimeout).WithPolling(poll).Should(BeTrue(), "nobody's server was not deleted")
			s.await(ctx, 3) // each process is scraped
		}
		s.expectAlerts(ctx, "StackitDuplicateServers", "StackitOrphanServers", "StackitOrphanRefused",
			"StackitMaintenanceSoon", "StackitKeyExpires", "StackitTargetTokenExpires", "StackitSidecarRestarting")

		By("mending it")
		Expect(c.env.Cloud().SetMaintenanceWindow(maintained, nil)).To(Succeed())
		Expect(c.env.Cloud().RemoveServer(edited)).To(Succeed())
		for _, name := range []string{"edited", "nobodys"} {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
			Expect(client.IgnoreNotFound(c.target.Delete(ctx, node))).To(Succeed())
		}
		c.setKeyExpiry(ctx, time.Time{})
		c.writeTargetToken(ctx, login, monthly)
		c.restartSidecar(ctx)
	}, SpecTimeout(6*time.Minute))

	It("fire on a quota that is used up and a key that is revoked, where Machines get no servers", func(ctx SpecContext) {
		s := startSeen(ctx)
		deleteSpare(ctx, 1) // of which there are metrics, too
		revoked := c.createRevokedSecret(ctx)
		class := c.createClass(ctx, "refused", specWith(nil))
		change(ctx, c, class, func() { class.SecretRef.Name = revoked.Name })
		quota := preset("quota-exceeded")
		quota.Server = "beyond-the-quota"
		mend := c.env.Cloud().Inject(quota)
		machines := []*v1alpha1.Machine{c.createMachine(ctx, "beyond-the-quota", "small"),
			c.createMachine(ctx, "refused-000-x", "refused"), c.createMachine(ctx, "refused-001-x", "refused")}
		s.expectAlerts(ctx, "StackitQuotaOrCapacityExhausted", "StackitCredentialsRefused", "StackitMachineCreationSlow")

		By("mending it")
		mend()
		change(ctx, c, revoked, func() { revoked.Data["serviceAccountKey"] = c.env.ServiceAccountKey() })
		for _, machine := range machines {
			Expect(c.Delete(ctx, machine)).To(Succeed())
		}
		for _, machine := range machines {
			Eventually(ctx, func(ctx context.Context) bool {
				_, err := c.machine(machine.Name)(ctx)
				return apierrors.IsNotFound(err)
			}).WithTimeout(2*downTimeout).WithPolling(poll).Should(BeTrue(), machine.Name)
		}
	}, SpecTimeout(6*time.Minute))

	It("fire on a volume that the deletion of a Machine from OpenStack left", func(ctx SpecContext) {
		s := startSeen(ctx)
		const name = "moved-000-x"
		id := c.fromOpenStack(ctx, name)
		server, _ := c.env.Cloud().Server(id)
		volume := server.VolumeIDs[0]
		DeferCleanup(c.env.Cloud().Inject(iaasmock.Fault{Operation: "ListVolumes", Status: http.StatusOK, Body: fmt.Sprintf(
			`{"items": [{"id": %q, "name": %q, "status": "AVAILABLE", "size": 20, "availabilityZone": %q}]}`,
			volume, name, iaasmock.DefaultAvailabilityZone)}))
		machine := &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.env.Namespace(),
				Annotations: map[string]string{migratedAnnotation: "true"}},
			Spec: v1alpha1.MachineSpec{Class: classReference("small"),
				ProviderID: "stackit://" + iaasmock.DefaultProjectID + "/" + id},
		}
		Expect(c.Create(ctx, machine)).To(Succeed())
		c.awaitPhase(ctx, name, v1alpha1.MachineRunning)
		Expect(c.Delete(ctx, machine)).To(Succeed())
		s.expectAlerts(ctx, "StackitVolumesLeft")
		Eventually(ctx, func(ctx context.Context) bool {
			_, err := c.machine(name)(ctx)
			return apierrors.IsNotFound(err)
		}).WithTimeout(downTimeout).WithPolling(poll).Should(BeTrue(), name)
		Expect(c.api().DeleteVolume(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion, volume).Execute()).To(Succeed())
	}, SpecTimeout(6*time.Minute))

	// Lists take the place of single reads. Not writes, and not 429: the driver sends writes, and all reads after a
	// 429, less and less often while they fail, twice a minute in the end. An operator sees ten of them in five minutes;
	// here five minutes are some seconds. The rule of StackitAPIThrottled has its test in test/monitoring.
	It("fire on reads that are answered with 503", func(ctx SpecContext) {
		s := startSeen(ctx)
		for _, operation := range []string{"GetServer", "ListServers"} {
			DeferCleanup(c.env.Cloud().Inject(iaasmock.Fault{Operation: operation, Status: http.StatusServiceUnavailable}))
		}
		deleteSpare(ctx, 3)
		s.expectAlerts(ctx, "StackitAPIFailing")
	}, SpecTimeout(6*time.Minute))

	It("read what is scraped, as does the dashboard", func() {
		alerts, err := monitoring.Alerts()
		Expect(err).NotTo(HaveOccurred())
		panels, err := monitoring.Panels()
		Expect(err).NotTo(HaveOccurred())
		var queries []string
		for _, alert := range alerts {
			queries = append(queries, alert.Expr)
		}
		for _, panel := range panels {
			for _, target := range panel.Targets {
				queries = append(queries, monitoring.Query(target.Expr))
			}
		}
		fromPrometheus := []string{"up", "ALERTS"}
		for _, query := range queries {
			for _, name := range monitoring.MetricNames(query) {
				if !slices.Contains(fromPrometheus, name) {
					Expect(seen).To(HaveKey(name), "%s", query)
				}
			}
		}
	})
})

func newPromtool() *monitoring.Promtool {
	GinkgoHelper()
	tool, err := monitoring.NewPromtool(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	return tool
}

// expectAlerts waits until these alerts have fired since the scrapes began, and no other, within the
// scrapes that count: later ones do not, however long an evaluation takes.
func (s *scrapes) expectAlerts(ctx context.Context, alerts ...string) {
	GinkgoHelper()
	tool := newPromtool()
	Eventually(ctx, func() error { return s.expectFired(ctx, tool, alerts...) }).
		WithTimeout(alertTimeout).WithPolling(5 * time.Second).Should(Succeed())
	_, _ = fmt.Fprintf(GinkgoWriter, "%v have fired, after at most %d scrapes\n", alerts, s.counted())
}

// createServer makes a server in the cloud, as somebody else than the sidecar would who uses
// its labels.
func (c *cluster) createServer(ctx context.Context, machine, class string) (id string) {
	GinkgoHelper()
	network, size, goes := iaasmock.DefaultNetworkID, int64(20), true
	payload := iaas.NewCreateServerPayload(iaasmock.DefaultMachineType, machine, iaas.CreateServerPayloadAllOfNetworking{
		CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: &network},
	})
	payload.Labels = map[string]any{clusterLabel: clusterName, provider.StackitMachineLabel: machine,
		provider.StackitMachineClassLabel: class}
	payload.BootVolume = &iaas.BootVolume{
		Size: &size, DeleteOnTermination: &goes, Source: iaas.NewBootVolumeSource(iaasmock.DefaultImageID, "image"),
	}
	server, err := c.api().CreateServer(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion).
		CreateServerPayload(*payload).Execute()
	Expect(err).NotTo(HaveOccurred())
	return server.GetId()
}

func (c *cluster) restartSidecar(ctx context.Context) {
	GinkgoHelper()
	c.env.KillSidecar()
	Expect(c.env.StartSidecar(ctx)).To(Succeed())
}

// monthly is how long the token of kubernetes/README.md is good for.
const monthly = 720 * time.Hour

// createTargetLogin creates a service account that may do everything in the target cluster, and a kubeconfig with its
// token.
func (c *cluster) createTargetLogin(ctx context.Context, folder string) {
	GinkgoHelper()
	user := serviceAccount{metav1.NamespaceSystem, account}
	named := metav1.ObjectMeta{Namespace: user.namespace, Name: user.name}
	Expect(c.target.Create(ctx, &corev1.ServiceAccount{ObjectMeta: named})).To(Succeed())
	Expect(c.target.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user.name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: user.namespace, Name: user.name}}})).
		To(Succeed())
	user.awaitRights(ctx, c.target, targetRights)
	c.writeTargetToken(ctx, folder, monthly)
	Expect(clientcmd.WriteToFile(c.targetKubeconfig(filepath.Join(folder, "token")), filepath.Join(folder, "kubeconfig"))).
		To(Succeed())
}

// writeTargetToken writes a new token for that kubeconfig.
func (c *cluster) writeTargetToken(ctx context.Context, folder string, lifetime time.Duration) {
	GinkgoHelper()
	token, err := serviceAccount{metav1.NamespaceSystem, account}.token(ctx, c.target, authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(lifetime / time.Second))})
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(folder, "token"), []byte(token), 0o600)).To(Succeed())
}

// setKeyExpiry writes the Secret's key with another validUntil; the zero time is none.
func (c *cluster) setKeyExpiry(ctx context.Context, expiry time.Time) {
	GinkgoHelper()
	var key map[string]any
	Expect(json.Unmarshal(c.env.ServiceAccountKey(), &key)).To(Succeed())
	delete(key, "validUntil")
	if !expiry.IsZero() {
		key["validUntil"] = expiry.Format(time.RFC3339)
	}
	content, err := json.Marshal(key)
	Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.env.Namespace(), Name: secretName}}
	change(ctx, c, secret, func() { secret.Data["serviceAccountKey"] = content })
}

// createRevokedSecret makes a copy of the credentials with a key that is revoked.
func (c *cluster) createRevokedSecret(ctx context.Context) *corev1.Secret {
	GinkgoHelper()
	key, err := c.env.Cloud().NewServiceAccountKey(iaasmock.DefaultProjectID)
	Expect(err).NotTo(HaveOccurred())
	Expect(c.env.Cloud().RevokeServiceAccountKey(key)).To(Succeed())
	credentials := &corev1.Secret{}
	Expect(c.Get(ctx, client.ObjectKey{Namespace: c.env.Namespace(), Name: secretName}, credentials)).To(Succeed())
	revoked := secretIn(c.env.Namespace(), "revoked", corev1.SecretTypeOpaque)
	revoked.Data = maps.Clone(credentials.Data)
	revoked.Data["serviceAccountKey"] = key
	Expect(c.Create(ctx, revoked)).To(Succeed())
	return revoked
}

// scrapeInterval is real time; for promtool the scrapes are promInterval apart. A second
// of the run so counts as 30 s, and windows and `for` of 15 minutes pass in half a minute.
// A server that does not boot for half a minute therefore counts as slow: the thresholds are
// tested in test/monitoring, and here that real series lead to the right alert. The sidecar
// and the manager keep their own time, and retry after 5 s or 3 minutes. So a window has
// fewer failures than an operator would see.
const (
	scrapeInterval = time.Second
	promInterval   = 30 * time.Second
	// quietScrapes come before a scenario: 90 minutes, the longest window of the alerts but for that of a
	// counter that begins with 0, in which the first scrape's values stayed as they are.
	quietScrapes = 180
)

// scrapedFrom is what a scrape by the PodMonitor adds to each series of the sidecar.
var scrapedFrom = model.LabelSet{
	"namespace": "default", "pod": "machine-controller-manager-0", "container": "machine-controller",
	"job": "default/machine-controller-manager", "endpoint": "mc-metrics", "instance": "10.0.0.1:10259",
}

// scrapes are a scenario's scrapes of the sidecar, one each scrapeInterval.
type scrapes struct {
	url func() string
	// began is when promtool's time begins, which counts from 1970.
	began time.Time

	mu sync.Mutex
	// series holds each one's values, as promtool writes them, by the number of the scrape.
	series map[string]map[int]string
	count  int
}

// startScrapes scrapes the sidecar until the spec ends.
func startScrapes(url func() string) *scrapes {
	GinkgoHelper()
	s := &scrapes{url: url,
		began: time.Now().Add(-quietScrapes * promInterval), series: map[string]map[int]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	Expect(s.scrape(ctx)).To(Succeed())
	go func() {
		defer close(done)
		ticker := time.NewTicker(scrapeInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_ = s.scrape(ctx) // up tells
			}
		}
	}()
	DeferCleanup(func() {
		cancel()
		<-done
	})
	return s
}

// scrape reads the metrics once. One that fails leaves nothing but up.
func (s *scrapes) scrape(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*scrapeInterval) // on a busy computer
	defer cancel()
	samples, err := readMetrics(ctx, s.url())
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.count++ }()
	up := "1"
	if err != nil {
		up = "0"
	}
	s.note(model.Metric{model.MetricNameLabel: "up"}, up)
	for _, sample := range samples {
		value := float64(sample.Value)
		if strings.HasSuffix(string(sample.Metric[model.MetricNameLabel]), "_timestamp_seconds") {
			value -= float64(s.began.Unix())
		}
		s.note(sample.Metric, strconv.FormatFloat(value, 'f', -1, 64))
	}
	return err
}

// await returns after so many more scrapes.
func (s *scrapes) await(ctx context.Context, more int) {
	GinkgoHelper()
	Eventually(ctx, s.counted).WithTimeout(alertTimeout).WithPolling(poll).Should(BeNumerically(">=", s.counted()+more))
}

func (s *scrapes) counted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// note adds a value to its series; s.mu is held. A label that the target has, too, is
// renamed, as Prometheus does.
func (s *scrapes) note(metric model.Metric, value string) {
	labelled := metric.Clone()
	for name, own := range scrapedFrom {
		if scraped, clashes := labelled[name]; clashes {
			labelled["exported_"+name] = scraped
		}
		labelled[name] = own
	}
	key := labelled.String()
	if s.series[key] == nil {
		s.series[key] = map[int]string{}
	}
	s.series[key][s.count] = value
}

// names are the metrics that were scraped.
func (s *scrapes) names() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]bool{}
	for key := range s.series {
		names[metricOf(key)] = true
	}
	return names
}

// metricOf returns the metric of a series such as `up{job="a"}`.
func metricOf(series string) string {
	name, _, _ := strings.Cut(series, "{")
	return monitoring.Family(name)
}

// expectFired returns an error unless exactly these alerts have fired since the scrapes
// began, as promtool evaluates the rules.
func (s *scrapes) expectFired(ctx context.Context, tool *monitoring.Promtool, want ...string) error {
	alerts, err := monitoring.Alerts()
	if err != nil {
		return err
	}
	read := map[string]bool{}
	for _, alert := range alerts {
		for _, name := range monitoring.MetricNames(alert.Expr) {
			read[name] = true
		}
	}
	series, length := s.forPromtool(read)
	samples := []any{}
	for _, alert := range want {
		samples = append(samples, map[string]any{"labels": fmt.Sprintf("{alertname=%q}", alert), "value": 1})
	}
	content, err := yaml.Marshal(map[string]any{
		"rule_files":          []string{monitoring.RuleFile},
		"evaluation_interval": promInterval.String(),
		"tests": []any{map[string]any{
			"interval":     promInterval.String(),
			"input_series": series,
			"promql_expr_test": []any{map[string]any{
				"expr":        `count by (alertname) (last_over_time(ALERTS{alertstate="firing"}[6h]))`,
				"eval_time":   length.String(),
				"exp_samples": samples,
			}},
		}},
	})
	if err != nil {
		return err
	}
	if err := tool.Write("scenario.yaml", content); err != nil {
		return err
	}
	_, err = tool.Run(ctx, "test", "rules", "scenario.yaml")
	return err
}

// forPromtool returns the series of these metrics, in promtool's notation, and the time of
// the last scrape.
func (s *scrapes) forPromtool(metrics map[string]bool) (series []map[string]string, last time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := min(s.count, longEnough)
	for _, key := range slices.Sorted(maps.Keys(s.series)) {
		if metrics[metricOf(key)] {
			series = append(series, map[string]string{"series": key, "values": notation(s.series[key], count)})
		}
	}
	return series, time.Duration(quietScrapes+count-1) * promInterval
}

// notation writes a series' values. What the first scrape showed stands for the quiet time
// before as well; a series that a scrape does not show any more ends with a stale marker.
func notation(values map[int]string, count int) string {
	first, shown := values[0]
	if !shown {
		first = "_"
	}
	// Prometheus' "1x3" is 1 1 1 1, its "_x3" is _ _ _.
	times := quietScrapes
	if shown {
		times--
	}
	text := fmt.Sprintf("%sx%d", first, times)
	for i := range count {
		value, shows := values[i]
		switch {
		case shows:
			text += " " + value
		case shown:
			text += " stale"
		default:
			text += " _"
		}
		shown = shows
	}
	return text
}

// readMetrics returns the series that a process shows at the URL.
func readMetrics(ctx context.Context, url string) (model.Vector, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, err
	}
	return expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.Now()}, slices.Collect(maps.Values(families))...)
}

// measured are the metrics of one scrape.
type measured model.Vector

// sum adds up the series of a metric that have these values among their labels.
func (m measured) sum(name string, values ...string) (sum float64) {
	for _, sample := range m {
		has := slices.Collect(maps.Values(sample.Metric))
		if slices.Contains(has, model.LabelValue(name)) &&
			!slices.ContainsFunc(values, func(value string) bool { return !slices.Contains(has, model.LabelValue(value)) }) {
			sum += float64(sample.Value)
		}
	}
	return sum
}

// expectKnownOperations looks for requests that the sidecar's metrics have no name for.
func (c *cluster) expectKnownOperations(ctx context.Context) {
	GinkgoHelper()
	if c.env.PID(localenv.PartSidecar) != 0 {
		samples, err := readMetrics(ctx, c.env.SidecarMetricsURL())
		Expect(err).NotTo(HaveOccurred())
		Expect(measured(samples).sum("stackit_api_http_requests_total", "UnknownOperation")).To(BeZero())
	}
}
