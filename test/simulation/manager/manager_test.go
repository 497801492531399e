// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestMain(m *testing.M) {
	AllowMany()
	logs := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(logs)
	_ = logs.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"})
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// life is one cluster with the real driver and the mock, to which nothing happens.
type life struct {
	*testing.T
	server *Server
	cloud  *iaasmock.Cloud
	begin  time.Time

	mu    sync.Mutex
	trace []string
}

func newLife(t *testing.T) *life {
	t.Helper()
	l := &life{T: t, server: NewServer(time.Now), begin: time.Now(), cloud: iaasmock.New(iaasmock.WithSeed(1),
		iaasmock.WithBootDuration(10*time.Second), iaasmock.WithDeleteDuration(5*time.Second), iaasmock.WithoutAuthentication())}
	spec, err := json.Marshal(map[string]any{
		"machineType": iaasmock.DefaultMachineType, "imageId": iaasmock.DefaultImageID, "bootVolume": map[string]any{"size": 20},
		"networking": map[string]any{"networkId": iaasmock.DefaultNetworkID}, "labels": map[string]any{"kubernetes.io/cluster": "shoot"},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.must(l.server.Create("machineclasses", &v1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Name: "class", Namespace: Namespace}, Provider: "stackit",
		ProviderSpec: kruntime.RawExtension{Raw: spec}, SecretRef: &corev1.SecretReference{Name: "secret", Namespace: Namespace},
	}))
	l.must(l.server.Create("secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "secret", Namespace: Namespace}, Data: map[string][]byte{
		"projectId": []byte(iaasmock.DefaultProjectID), "region": []byte(iaasmock.DefaultRegion), "userData": []byte("#cloud-config"),
		"serviceAccountKey": []byte("{}"),
	}}))
	return l
}

func (l *life) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *life) log(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trace = append(l.trace, fmt.Sprintf("%13.6f ", time.Since(l.begin).Seconds())+fmt.Sprintf(format, args...))
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }

var ids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|bootstrap-token-\w+`)

// kubernetes answers after 1.7 ms; its events are under way for 3.1 ms.
func (l *life) kubernetes(request *http.Request) (*http.Response, error) {
	clock.RealClock{}.Sleep(1700 * time.Microsecond)
	if IsWatch(request) {
		return l.server.Watch(request, func(e Event, closed <-chan struct{}) bool {
			select {
			case <-time.After(time.Until(e.At.Add(3100 * time.Microsecond))):
				return true
			case <-closed:
				return false
			}
		}), nil
	}
	response := l.server.Do(request)
	if request.Method != http.MethodGet {
		l.log("%s %s %d", request.Method, ids.ReplaceAllString(request.URL.Path, "ID"), response.StatusCode)
	}
	return response, nil
}

func (l *life) iaas(request *http.Request) (*http.Response, error) {
	clock.RealClock{}.Sleep(10 * time.Millisecond)
	l.log("%s %s", request.Method, ids.ReplaceAllString(request.URL.Path, "ID"))
	if request.Body == nil {
		request.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	l.cloud.ServeHTTP(recorder, request)
	return recorder.Result(), nil
}

func (l *life) start() *Controller {
	l.Helper()
	now := time.Now()
	c, err := Start(transport(l.kubernetes), listed{l, provider.NewProvider(&spi.PluginSPIImpl{
		Config: spi.Config{Endpoint: "http://iaas.invalid", NoAuth: true}, Transport: transport(l.iaas), Jitter: func() float64 { return 0.5 },
	}, provider.WithActingSince(func() time.Time { return now }))}, func(string, string) {})
	l.must(err)
	clock.RealClock{}.Sleep(15 * time.Second)
	return c
}

// listed is the driver; it checks that ListMachines is called by whom slowCache takes for the collector.
type listed struct {
	*life
	driver.Driver
}

// ListMachines implements driver.Driver.
func (d listed) ListMachines(ctx context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	if !CollectorCalls() {
		d.Error("ListMachines is called, and not by the orphan collector")
	}
	return d.Driver.ListMachines(ctx, r)
}

func (l *life) want(name string) {
	l.must(l.server.Create("machines", &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace},
		Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: "class"}},
	}))
}

func (l *life) phase(name string) string {
	if m, exists := l.server.Get("machines", name).(*v1alpha1.Machine); exists {
		return string(m.Status.CurrentStatus.Phase)
	}
	return "gone"
}

func (l *life) awaitPhase(name, phase string) {
	l.Helper()
	for range 300 {
		if l.phase(name) == phase {
			return
		}
		clock.RealClock{}.Sleep(time.Second)
	}
	l.Errorf("%s is %s, want %s\n%s", name, l.phase(name), phase, strings.Join(l.trace, "\n"))
}

// run takes one Machine from its creation until it is gone.
func (l *life) run(name string) {
	l.want(name)
	l.awaitPhase(name, "Pending")
	l.must(l.server.Create("nodes", &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}))
	l.awaitPhase(name, "Running")
	clock.RealClock{}.Sleep(time.Minute)
	l.must(l.server.Delete("machines", name))
	l.awaitPhase(name, "gone")
	if servers, node := l.cloud.Servers(), l.server.Get("nodes", name); len(servers) > 0 || node != nil {
		l.Errorf("left are the servers %v and the Node %v", servers, node)
	}
}

// TestLives: nothing of a controller is left when it has ended, and nothing but its calls' length
// decides how a life goes. In short mode 10 lives.
func TestLives(t *testing.T) {
	lives := 300
	if testing.Short() {
		lives = 10
	}
	first, goroutines := "", runtime.NumGoroutine()
	for i := range lives {
		synctest.Test(t, func(t *testing.T) {
			l := newLife(t)
			c := l.start()
			l.run("machine-aaaaa")
			c.End()
			l.must(EndBroadcasters(1))
			slices.Sort(l.trace)
			trace := strings.Join(l.trace, "\n")
			if first == "" {
				first = trace
			}
			if trace != first {
				t.Errorf("life %d differs:\n%s\nthe first:\n%s", i+1, trace, first)
			}
		})
		if t.Failed() {
			return
		}
	}
	if left := runtime.NumGoroutine() - goroutines; left > 2 {
		t.Errorf("%d goroutines more after %d lives", left, lives)
	}
	t.Log(first)
}

// TestKill: two controllers on one server; each ends when it is told to, at any moment.
func TestKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		first := l.start()
		l.want("machine-aaaaa")
		clock.RealClock{}.Sleep(5 * time.Second) // its server boots
		second := l.start()
		first.Kill()
		l.awaitPhase("machine-aaaaa", "Pending")
		if servers := l.cloud.Servers(); len(servers) != 1 {
			t.Errorf("%d servers", len(servers))
		}
		if m, err := second.Machines.Get("machine-aaaaa"); err != nil || m.Spec.ProviderID == "" {
			t.Errorf("its cache has %v, %v", m, err)
		}
		first.End()
		second.End()
		if err := EndBroadcasters(3); err == nil {
			t.Error("a broadcaster too few is no error")
		}
		l.must(EndBroadcasters(2))
	})
}
