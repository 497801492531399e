// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package manager runs machine-controller-manager's own machine controller in a bubble of
// testing/synctest, with real clientsets that reach an API server in memory.
//
// The controller was not designed to be stopped, so controller.go reaches into its internals where necessary. That
// breaks with a version of the controller that is built differently; each such place has a test.
package manager

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	machineclientset "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions"
	informers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions/machine/v1alpha1"
	machinelisters "github.com/gardener/machine-controller-manager/pkg/client/listers/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	machinecontroller "github.com/gardener/machine-controller-manager/pkg/util/provider/machinecontroller"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/options"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

const (
	// Namespace is the namespace of all Machines, classes and Secrets.
	Namespace = "simulated"
	// Finalizer is the finalizer of Machines, and of classes in use: without it the manager does nothing.
	Finalizer = machinecontroller.MCMFinalizerName
	// OrphanPeriod is the default time between two orphan runs.
	OrphanPeriod = 15 * time.Minute
	// CreationTimeout is the manager's default creation timeout.
	CreationTimeout = 20 * time.Minute
	// healthTimeout is the health timeout of the Gardener extensions.
	healthTimeout = 10 * time.Minute
	// workers is the number of workers of each queue, and so of Machines processed at a time.
	workers = 25
)

// Controller is a running machine controller.
type Controller struct {
	// Machines reads Machines from the controller's cache, which may be older than the API server's objects.
	Machines machinelisters.MachineNamespaceLister

	controller machinecontroller.Controller
	kill       sync.Once
	stop, done chan struct{}
	factories  []interface{ Shutdown() }
}

// Start starts a controller, which runs until Kill or End, as in a sidecar that leads. Its flags have the manager's
// defaults, except for a drain timeout of 5 minutes. All requests of its clientsets go through the transport.
func Start(transport http.RoundTripper, d driver.Driver) (*Controller, error) {
	config := &rest.Config{
		Host: "http://kubernetes.invalid", Transport: transport, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}
	machineClient, err := machineclientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	machines := machineinformers.NewFilteredSharedInformerFactory(machineClient, 12*time.Hour, Namespace, nil)
	control := kubeinformers.NewSharedInformerFactoryWithOptions(client, 12*time.Hour,
		kubeinformers.WithNamespace(Namespace))
	target := kubeinformers.NewSharedInformerFactory(client, 12*time.Hour)
	duration := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	controller, err := machinecontroller.NewController(Namespace, machineClient.MachineV1alpha1(), client,
		client, d, target, control.Core().V1().Secrets(), sortedClasses{machines.Machine().V1alpha1().MachineClasses()},
		sortedMachines{machines.Machine().V1alpha1().Machines()},
		record.NewFakeRecorder(0), options.SafetyOptions{
			MachineCreationTimeout: duration(CreationTimeout), MachineHealthTimeout: duration(healthTimeout),
			MachineDrainTimeout: duration(5 * time.Minute), MachineInPlaceUpdateTimeout: duration(20 * time.Minute),
			MachineSafetyOrphanVMsPeriod: duration(OrphanPeriod), MachineSafetyAPIServerStatusCheckPeriod: duration(time.Minute),
			MachineSafetyAPIServerStatusCheckTimeout: duration(30 * time.Second),
			MaxEvictRetries:                          3, PvDetachTimeout: duration(2 * time.Minute),
			PvReattachTimeout: duration(90 * time.Second),
		}, "KernelDeadlock,ReadonlyFilesystem,DiskPressure,NetworkUnavailable", "", nil, machineutils.LongRetry)
	if err != nil {
		return nil, err
	}
	c := &Controller{
		Machines: machines.Machine().V1alpha1().Machines().Lister().Machines(Namespace), controller: controller,
		stop: make(chan struct{}), done: make(chan struct{}), factories: []interface{ Shutdown() }{machines, control, target},
	}
	machines.Start(c.stop)
	control.Start(c.stop)
	target.Start(c.stop)
	go func() {
		controller.Run(workers, c.stop)
		close(c.done)
	}()
	return c, nil
}

// sortedMachines and sortedClasses list objects in the order of their names: the orphan collector processes them
// one after the other, and a cache lists them in the random order of a map.
type (
	sortedMachines struct {
		informers.MachineInformer
	}
	sortedClasses struct {
		informers.MachineClassInformer
	}
	sorted struct{ cache.Indexer }
)

// Lister implements MachineInformer.
func (s sortedMachines) Lister() machinelisters.MachineLister {
	return machinelisters.NewMachineLister(sorted{s.Informer().GetIndexer()})
}

// Lister implements MachineClassInformer.
func (s sortedClasses) Lister() machinelisters.MachineClassLister {
	return machinelisters.NewMachineClassLister(sorted{s.Informer().GetIndexer()})
}

// List implements cache.Indexer.
func (s sorted) List() []any {
	all := s.Indexer.List()
	slices.SortFunc(all, func(a, b any) int { return cmp.Compare(nameOf(a), nameOf(b)) })
	return all
}

func nameOf(object any) string {
	name, _ := cache.MetaNamespaceKeyFunc(object) // an object in a cache has a key
	return name
}

// Kill stops the controller from starting new work and returns at once. It does not end requests in flight: the
// transport must make them fail. Further calls do nothing.
func (c *Controller) Kill() {
	c.kill.Do(func() {
		close(c.stop)
		shutDownQueues(c.controller)
	})
}

// End kills the controller and waits for all of its goroutines but the event broadcaster's.
func (c *Controller) End() {
	c.Kill()
	<-c.done
	for _, f := range c.factories {
		f.Shutdown()
	}
}

// shutDownQueues shuts the controller's queues down. Run would never return otherwise: it waits for its workers
// before its deferred ShutDown, and the workers wait for the queues.
func shutDownQueues(c machinecontroller.Controller) {
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Type() == reflect.TypeFor[workqueue.TypedRateLimitingInterface[string]]() {
			(*(*workqueue.TypedRateLimitingInterface[string])(unsafe.Pointer(f.UnsafeAddr()))).ShutDown()
		}
	}
}

// EndBroadcasters ends the event broadcasters of all controllers started in the caller's bubble of testing/synctest.
// They are not accessible, so it finds their addresses in the stacks of their goroutines. started is the number of
// these controllers: if it finds another number of broadcasters, it ends none and returns an error.
func EndBroadcasters(started int) error {
	buffer := make([]byte, 1<<20)
	n := runtime.Stack(buffer, true)
	for ; n == len(buffer); n = runtime.Stack(buffer, true) {
		buffer = make([]byte, 2*len(buffer))
	}
	goroutines := strings.Split(string(buffer[:n]), "\n\n")
	bubble := bubbles.FindString(goroutines[0]) // the caller is the first
	found := map[uint64]bool{}
	for _, g := range goroutines {
		head, _, _ := strings.Cut(g, "\n")
		if loop := loops.FindStringSubmatch(g); loop != nil && bubble != "" && strings.Contains(head, bubble) {
			at, err := strconv.ParseUint(loop[1], 16, 64)
			if err != nil {
				return err
			}
			found[at] = true
		}
	}
	if len(found) != started {
		return fmt.Errorf("found %d event broadcasters of %d controllers: must be one for each controller",
			len(found), started)
	}
	for _, at := range slices.SortedFunc(maps.Keys(found), cmp.Compare[uint64]) {
		address := uintptr(at)
		(*(**apiwatch.Broadcaster)(unsafe.Pointer(&address))).Shutdown()
	}
	return nil
}

var (
	bubbles = regexp.MustCompile(`synctest bubble \d+\]`)
	loops   = regexp.MustCompile(`watch\.\(\*Broadcaster\)\.loop\(0x([0-9a-f]+)\)`)
)

// AllowMany prepares the process for several controllers; call it in TestMain. From then on Prometheus' default
// registry registers nothing: it would panic when a second controller registers the same metrics. Unhandled errors
// are no longer rate-limited: the limit would sleep until after the last error, whose time may come from a bubble with
// a clock that is years ahead. Informers list before they watch, since a Server has no streaming lists.
func AllowMany() error {
	prometheus.DefaultRegisterer = noRegistry{}
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] // it logs; the second one sleeps
	return os.Setenv("KUBE_FEATURE_WatchListClient", "false")
}

type noRegistry struct{}

// Register implements prometheus.Registerer.
func (noRegistry) Register(prometheus.Collector) error { return nil }

// MustRegister implements prometheus.Registerer.
func (noRegistry) MustRegister(...prometheus.Collector) {}

// Unregister implements prometheus.Registerer.
func (noRegistry) Unregister(prometheus.Collector) bool { return true }
