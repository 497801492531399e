// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// aPod mounts a volume and has a variable.
func aPod(volume corev1.VolumeSource, variable corev1.EnvVar) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "first"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "sidecar", Env: []corev1.EnvVar{variable},
				VolumeMounts: []corev1.VolumeMount{{Name: "files", MountPath: "/var/run/target"}},
			}},
			Volumes: []corev1.Volume{{Name: "files", VolumeSource: volume}},
		},
	}
}

// podEnv is an environment with these objects, and nothing that runs.
func podEnv(t *testing.T, objects ...client.Object) *Env {
	t.Helper()
	e := newEnv(newSettings(nil))
	e.dir = t.TempDir()
	e.programs = programs{manager: "/manager", sidecar: "/sidecar"}
	e.control = &cluster{
		restConfig: &rest.Config{Host: "https://127.0.0.1:6443"}, credentials: credentials{ca: []byte("ca")},
		client: fake.NewClientBuilder().WithObjects(objects...).Build(),
	}
	return e
}

func secret(name string, data map[string]string) *corev1.Secret {
	content := map[string][]byte{}
	for key, value := range data {
		content[key] = []byte(value)
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name}, Data: content}
}

func TestMountsAreFilesThatNameEachOther(t *testing.T) {
	g := NewWithT(t)
	e := podEnv(t,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "generic"},
			Data: map[string]string{"kubeconfig": "server: https://kubernetes.default.svc, tokenFile: /var/run/target/token",
				"other": "left out"}},
		secret("access", map[string]string{"token": "abc", "config": "left out"}))
	projected := &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "generic"},
			Items:                []corev1.KeyToPath{{Key: "kubeconfig", Path: "config"}},
		}},
		{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "access"},
			Items:                []corev1.KeyToPath{{Key: "token", Path: "token"}},
		}},
	}}
	files, err := e.mount(t.Context(), aPod(corev1.VolumeSource{Projected: projected}, corev1.EnvVar{}), "own token")
	g.Expect(err).NotTo(HaveOccurred())

	content := func(path string) string {
		read, err := os.ReadFile(files.in(path))
		g.Expect(err).NotTo(HaveOccurred())
		return string(read)
	}
	g.Expect(content("/var/run/target/config")).
		To(Equal("server: https://127.0.0.1:6443, tokenFile: " + files.in("/var/run/target/token")))
	g.Expect(content("/var/run/target/token")).To(Equal("abc"))
	g.Expect(content("/var/run/secrets/kubernetes.io/serviceaccount/token")).To(Equal("own token"))
	g.Expect(content("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")).To(Equal("ca"))
	g.Expect(filepath.Join(files.in("/var/run/target"), "other")).NotTo(BeAnExistingFile())
}

func TestAProjectedTokenIsRequestedForItsAudience(t *testing.T) {
	g := NewWithT(t)
	e := podEnv(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "runner"}})
	var requested authenticationv1.TokenRequestSpec
	e.control.client = interceptor.NewClient(e.control.client.(client.WithWatch), interceptor.Funcs{
		SubResourceCreate: func(
			_ context.Context, _ client.Client, name string, account, request client.Object,
			_ ...client.SubResourceCreateOption,
		) error {
			g.Expect([]string{name, account.GetName()}).To(Equal([]string{"token", "runner"}))
			made := request.(*authenticationv1.TokenRequest)
			requested, made.Status.Token = made.Spec, "abc"
			return nil
		},
	})
	pod := aPod(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "sts.example",
			ExpirationSeconds: ptr.To[int64](600), Path: "token"}},
	}}}, corev1.EnvVar{})
	pod.Spec.ServiceAccountName = "runner"
	_, err := e.mount(t.Context(), pod, "own token")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(requested).To(
		Equal(authenticationv1.TokenRequestSpec{Audiences: []string{"sts.example"}, ExpirationSeconds: ptr.To[int64](600)}))
	path := e.PodPath(pod, "/var/run/target/token")
	g.Expect(os.ReadFile(path)).To(BeEquivalentTo("abc"))
	g.Expect(os.Readlink(path)).To(Equal("..data/token"))
}

func TestAMountedCAIsReadInsteadOfTheSystems(t *testing.T) {
	g := NewWithT(t)
	files := mounts{"/etc/ssl/certs/own.crt": "/tmp/volumes/ca/ca.crt", "/var/run/target": "/tmp/volumes/target"}
	mounted := func(path string) corev1.Container {
		return corev1.Container{VolumeMounts: []corev1.VolumeMount{{MountPath: path}}}
	}
	g.Expect(files.environment(mounted("/etc/ssl/certs/own.crt"))).To(ConsistOf("SSL_CERT_DIR=/tmp/volumes/ca"))
	g.Expect(files.environment(mounted("/var/run/target"))).To(BeEmpty())
}

func TestVariablesOfAContainer(t *testing.T) {
	g := NewWithT(t)
	field := func(path string) corev1.EnvVar {
		return corev1.EnvVar{Name: "POD_NAMESPACE",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	pod := aPod(corev1.VolumeSource{}, field("metadata.namespace"))
	variables, err := environment(pod, pod.Spec.Containers[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(expand("--namespace=$(POD_NAMESPACE)/$(UNKNOWN)", variables)).To(Equal("--namespace=shoot/$(UNKNOWN)"))

	pod = aPod(corev1.VolumeSource{}, field("status.podIP"))
	_, err = environment(pod, pod.Spec.Containers[0])
	g.Expect(err).To(MatchError(ContainSubstring("POD_NAMESPACE")))
}
