// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
)

// Object is an object that a Server can store, such as a *v1alpha1.Machine.
type Object interface {
	metav1.Object
	runtime.Object
}

type kind struct {
	schema.GroupVersion
	empty Object
}

// name returns the kind's name.
func (k kind) name() string { return reflect.TypeOf(k.empty).Elem().Name() }

// kinds are all kinds that the manager uses, by resource.
var kinds = map[string]kind{
	"machines":               {v1alpha1.SchemeGroupVersion, &v1alpha1.Machine{}},
	"machineclasses":         {v1alpha1.SchemeGroupVersion, &v1alpha1.MachineClass{}},
	"secrets":                {corev1.SchemeGroupVersion, &corev1.Secret{}},
	"nodes":                  {corev1.SchemeGroupVersion, &corev1.Node{}},
	"pods":                   {corev1.SchemeGroupVersion, &corev1.Pod{}},
	"persistentvolumes":      {corev1.SchemeGroupVersion, &corev1.PersistentVolume{}},
	"persistentvolumeclaims": {corev1.SchemeGroupVersion, &corev1.PersistentVolumeClaim{}},
	"volumeattachments":      {storagev1.SchemeGroupVersion, &storagev1.VolumeAttachment{}},
	"poddisruptionbudgets":   {policyv1.SchemeGroupVersion, &policyv1.PodDisruptionBudget{}},
}

// Event is one version of an object, for a watch.
type Event struct {
	Resource, Name string
	// At is when it was written, by the clock of the processes, not the server's.
	At time.Time
	// line is the watch's JSON line.
	line []byte
}

// Server is an API server in memory, for the control cluster and the target cluster. It implements the parts that
// the manager's clients use: UIDs, versions, conflicts, generations, writes of the status alone, finalizers,
// patches, lists and watches. Do not modify the objects that its methods take or return: the Server keeps them.
type Server struct {
	now func() time.Time

	mu      sync.Mutex
	objects map[string]map[string]Object
	events  []Event
	uids    int
	// changed is closed at the next change.
	changed chan struct{}
}

// NewServer returns an empty Server. It calls now for the creation and deletion timestamps of its objects.
func NewServer(now func() time.Time) *Server {
	s := &Server{now: now, objects: map[string]map[string]Object{}, changed: make(chan struct{})}
	for resource := range kinds {
		s.objects[resource] = map[string]Object{}
	}
	return s
}

// Create adds an object, and sets its UID, generation and resourceVersion, and the creationTimestamp if it has none.
// It returns AlreadyExists if the resource has an object with this name.
func (s *Server) Create(resource string, object Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, exists := s.objects[resource][object.GetName()]; exists {
		return apierrors.NewAlreadyExists(groupResource(resource), object.GetName())
	}
	s.uids++
	object.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
	object.SetGeneration(1)
	if created := object.GetCreationTimestamp(); created.IsZero() {
		object.SetCreationTimestamp(s.timestamp())
	}
	return s.write(watch.Added, resource, object)
}

// timestamp returns the server's time for its objects, in whole seconds.
func (s *Server) timestamp() metav1.Time { return metav1.NewTime(s.now().Truncate(time.Second)) }

// Get returns the object with that name; nil if there is none.
func (s *Server) Get(resource, name string) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[resource][name]
}

// list returns the objects of a resource, by name, and the version of the list.
func (s *Server) list(resource string) (all []Object, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.objects[resource])) {
		all = append(all, s.objects[resource][name])
	}
	return all, strconv.Itoa(len(s.events))
}

// Objects returns the objects of a resource that have the type T, sorted by name.
func Objects[T Object](s *Server, resource string) (all []T) {
	objects, _ := s.list(resource)
	for _, object := range objects {
		if t, isOne := object.(T); isOne {
			all = append(all, t)
		}
	}
	return all
}

// Edit applies a change to an object, including its status. It does nothing if there is no object with that name.
func Edit[T Object](s *Server, resource, name string, change func(T)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, exists := s.objects[resource][name]
	if !exists {
		return
	}
	object := clone(old)
	if t, isOne := object.(T); isOne {
		change(t)
	}
	if !reflect.DeepEqual(field(old, "Spec"), field(object, "Spec")) {
		object.SetGeneration(old.GetGeneration() + 1)
	}
	_ = s.write(watch.Modified, resource, object) // it was read from JSON
}

func clone(object Object) Object {
	copied, isObject := object.DeepCopyObject().(Object)
	if !isObject {
		panic("the copy of an object is not an Object")
	}
	return copied
}

// Delete requests the deletion of an object, as a user does: an object with finalizers only gets a deletionTimestamp.
// It returns NotFound if there is no object with that name.
func (s *Server) Delete(resource, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, exists := s.objects[resource][name]
	switch {
	case !exists:
		return apierrors.NewNotFound(groupResource(resource), name)
	case len(old.GetFinalizers()) == 0:
		return s.write(watch.Deleted, resource, clone(old))
	case old.GetDeletionTimestamp() != nil:
		return nil
	}
	object, now := clone(old), s.timestamp()
	object.SetDeletionTimestamp(&now)
	object.SetGeneration(old.GetGeneration() + 1)
	return s.write(watch.Modified, resource, object)
}

// Drop removes an object, if it exists, regardless of its finalizers.
func (s *Server) Drop(resource, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, exists := s.objects[resource][name]; exists {
		_ = s.write(watch.Deleted, resource, clone(old))
	}
}

// update replaces an object, or its status alone.
func (s *Server) update(resource string, object Object, subresource string) (Object, error) {
	name := object.GetName()
	old, exists := s.objects[resource][name]
	if !exists {
		return nil, apierrors.NewNotFound(groupResource(resource), name)
	}
	if object.GetUID() != old.GetUID() ||
		object.GetResourceVersion() != "" && object.GetResourceVersion() != old.GetResourceVersion() {
		return nil, apierrors.NewConflict(groupResource(resource), name, errors.New("the object has been modified"))
	}
	if subresource == "status" {
		status := field(object, "Status")
		object = clone(old)
		setField(object, "Status", status)
	} else {
		object.SetResourceVersion(old.GetResourceVersion())
		object.SetDeletionTimestamp(old.GetDeletionTimestamp())
		object.SetCreationTimestamp(old.GetCreationTimestamp())
		object.SetGeneration(old.GetGeneration())
		setField(object, "Status", field(old, "Status"))
		if !reflect.DeepEqual(field(old, "Spec"), field(object, "Spec")) {
			object.SetGeneration(old.GetGeneration() + 1)
		}
	}
	switch {
	case object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0:
		return object, s.write(watch.Deleted, resource, object)
	case equality.Semantic.DeepEqual(object, old):
		return old, nil // nothing to write
	}
	return object, s.write(watch.Modified, resource, object)
}

// patch applies a merge patch; the manager sends no other kind.
func (s *Server) patch(resource, name, subresource string, change []byte) (Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, exists := s.objects[resource][name]
	if !exists {
		return nil, apierrors.NewNotFound(groupResource(resource), name)
	}
	before, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	after, err := jsonpatch.MergePatch(before, change)
	if err != nil {
		return nil, err
	}
	object := clone(kinds[resource].empty)
	if err := json.Unmarshal(after, object); err != nil {
		return nil, err
	}
	return s.update(resource, object, subresource)
}

// write stores a version of an object, and notifies watches.
func (s *Server) write(change watch.EventType, resource string, object Object) error {
	object.SetResourceVersion(strconv.Itoa(len(s.events) + 1))
	object.GetObjectKind().SetGroupVersionKind(kinds[resource].WithKind(kinds[resource].name()))
	line, err := json.Marshal(map[string]any{"type": change, "object": object})
	if err != nil {
		return err
	}
	if change == watch.Deleted {
		delete(s.objects[resource], object.GetName())
	} else {
		s.objects[resource][object.GetName()] = object
	}
	s.events = append(s.events, Event{resource, object.GetName(), clock.RealClock{}.Now(), line})
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

// field returns a field of an object; nil if it has none.
func field(object Object, name string) any {
	if f := reflect.ValueOf(object).Elem().FieldByName(name); f.IsValid() {
		return f.Interface()
	}
	return nil
}

func setField(object Object, name string, value any) {
	if value != nil {
		reflect.ValueOf(object).Elem().FieldByName(name).Set(reflect.ValueOf(value))
	}
}

func groupResource(resource string) schema.GroupResource {
	return schema.GroupResource{Group: kinds[resource].Group, Resource: resource}
}

// Target is the object that a request addresses; with an empty Name it is the list of a resource.
type Target struct{ Resource, Name, Subresource string }

// TargetOf parses a request's path. The resource is empty for discovery paths.
func TargetOf(request *http.Request) Target {
	path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	path = path[min(len(path), map[string]int{"api": 2, "apis": 3}[path[0]]):]
	if len(path) > 2 && path[0] == "namespaces" {
		path = path[2:]
	}
	path = append(path, "", "", "")
	return Target{path[0], path[1], path[2]}
}

// IsWatch reports whether the request is for a watch: call Watch for it, and Do for all others.
func IsWatch(request *http.Request) bool { return request.URL.Query().Get("watch") != "" }

// Do answers a request other than a watch. Errors are in the answer, as from an API server.
func (s *Server) Do(request *http.Request) *http.Response {
	var body []byte
	if request.Body != nil {
		body, _ = io.ReadAll(request.Body) // it is in memory
	}
	answer, err := s.answer(request, body)
	if err != nil {
		return Refusal(request, err)
	}
	return response(request, http.StatusOK, answer)
}

func (s *Server) answer(request *http.Request, body []byte) (any, error) {
	t := TargetOf(request)
	kind, known := kinds[t.Resource]
	switch {
	case t.Resource == "":
		return map[string]any{}, nil // no groups: MCM asks whether there are evictions and attachments
	case !known:
		return nil, fmt.Errorf("unknown resource %q", t.Resource)
	case request.Method == http.MethodGet && t.Name == "":
		items, version := s.list(t.Resource)
		return map[string]any{
			"kind": kind.name() + "List", "apiVersion": kind.String(),
			"metadata": map[string]string{"resourceVersion": version}, "items": items,
		}, nil
	case request.Method == http.MethodGet:
		if object := s.Get(t.Resource, t.Name); object != nil {
			return object, nil
		}
		return nil, apierrors.NewNotFound(groupResource(t.Resource), t.Name)
	case request.Method == http.MethodDelete:
		return &metav1.Status{Status: metav1.StatusSuccess}, s.Delete(t.Resource, t.Name)
	case request.Method == http.MethodPatch && request.Header.Get("Content-Type") == string(types.MergePatchType):
		return s.patch(t.Resource, t.Name, t.Subresource, body)
	case request.Method == http.MethodPatch:
		panic("unsupported type of patch: " + request.Header.Get("Content-Type"))
	}
	object := clone(kind.empty)
	if err := json.Unmarshal(body, object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if request.Method == http.MethodPost {
		return object, s.Create(t.Resource, object)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.update(t.Resource, object, t.Subresource)
}

// Refusal returns the answer of an API server that refuses a request because of err. Its HTTP status is 500 unless err
// has a status of Kubernetes' API, such as a conflict.
func Refusal(request *http.Request, err error) *http.Response {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	return response(request, int(status.Code), &status)
}

func response(request *http.Request, code int, body any) *http.Response {
	raw, err := json.Marshal(body)
	if err != nil {
		code, raw = http.StatusInternalServerError, []byte(err.Error())
	}
	return stream(request, code, io.NopCloser(bytes.NewReader(raw)))
}

func stream(request *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Request: request, Body: body,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: -1,
	}
}

// Watch answers a watch request. It calls show before each event: show waits until the event may be sent, and
// returns false if it never may.
func (s *Server) Watch(request *http.Request, show func(Event, <-chan struct{}) bool) *http.Response {
	e := &events{server: s, resource: TargetOf(request).Resource, show: show, closed: make(chan struct{})}
	e.next, _ = strconv.Atoi(request.URL.Query().Get("resourceVersion"))
	return stream(request, http.StatusOK, e)
}

// events is the body of a watch response.
type events struct {
	server   *Server
	resource string
	show     func(Event, <-chan struct{}) bool
	closed   chan struct{}
	once     sync.Once
	// next is the index of the next event to send.
	next int
	rest bytes.Buffer
}

// Read implements io.Reader.
func (e *events) Read(into []byte) (int, error) {
	for e.rest.Len() == 0 {
		e.server.mu.Lock()
		changed := e.server.changed
		for e.next < len(e.server.events) && e.server.events[e.next].Resource != e.resource {
			e.next++
		}
		if e.next == len(e.server.events) {
			e.server.mu.Unlock()
			select {
			case <-changed:
			case <-e.closed:
				return 0, io.EOF
			}
			continue
		}
		event := e.server.events[e.next]
		e.next++
		e.server.mu.Unlock()
		if !e.show(event, e.closed) {
			return 0, io.EOF
		}
		_, _ = e.rest.Write(event.line)
	}
	return e.rest.Read(into)
}

// Close implements io.Closer.
func (e *events) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}
