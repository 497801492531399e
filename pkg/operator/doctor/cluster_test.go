// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/golang-jwt/jwt/v5"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// clinic is a rig with a manager, a sidecar and their leases.
type clinic struct {
	*testrig.Rig
	deployment       *appsv1.Deployment
	manager, sidecar *corev1.Container
	leases           map[string]*coordinationv1.Lease
	// target is the Secret with the sidecar's login.
	target *corev1.Secret
}

func newClinic(t *testing.T) *clinic {
	t.Helper()
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: testrig.Namespace, Name: name}
	}
	c := &clinic{Rig: testrig.New(t), leases: map[string]*coordinationv1.Lease{},
		target: &corev1.Secret{ObjectMeta: meta("target")}}
	mounts := []corev1.VolumeMount{{Name: "target", MountPath: "/var/run/target"}}
	c.deployment = &appsv1.Deployment{ObjectMeta: meta("mcm"),
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{
				{Name: managerName, Image: "registry/machine-controller-manager:" + managerVersion, VolumeMounts: mounts},
				{Name: "sidecar", Image: "registry/" + sidecarImage + ":dev@sha256:0", VolumeMounts: mounts,
					Args: []string{"--target-kubeconfig=/var/run/target/kubeconfig", "--namespace=" + testrig.Namespace}},
			},
			Volumes: []corev1.Volume{{Name: "target", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{
					{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "target"}}}}}}}},
		}}}, Status: appsv1.DeploymentStatus{ReadyReplicas: 1}}
	containers := c.deployment.Spec.Template.Spec.Containers
	c.manager, c.sidecar = &containers[0], &containers[1]
	for _, name := range []string{managerName, sidecarName} {
		c.leases[name] = &coordinationv1.Lease{ObjectMeta: meta(name), Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("pod-1"), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: ptr.To(metav1.NowMicro())}}
		c.Add(c.leases[name])
	}
	c.Add(c.deployment, c.target)
	c.target.Data = kubeconfig("https://kubernetes.default.svc", "", "tokenFile: "+ownToken)
	return c
}

// kubeconfig is a Secret's.
func kubeconfig(server, ca, login string) map[string][]byte {
	return map[string][]byte{"kubeconfig": fmt.Appendf(nil, `{apiVersion: v1, kind: Config,
current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %q}}],
users: [{name: u, user: {%s}}]}`, server, ca, login)}
}

// examineRig looks at everything.
func examineRig(t *testing.T, rig *testrig.Rig) *Result {
	t.Helper()
	rig.MakeClusters()
	return (&Doctor{Access: rig.Access, Report: noting(nil)}).Examine(t.Context())
}

// remove takes an object away.
func (c *clinic) remove(gone client.Object) {
	for i, object := range c.Objects {
		if object == gone {
			c.Objects = append(c.Objects[:i], c.Objects[i+1:]...)
			return
		}
	}
}

func (c *clinic) secret() *corev1.Secret        { return c.Objects[0].(*corev1.Secret) }
func (c *clinic) class() *v1alpha1.MachineClass { return c.Objects[1].(*v1alpha1.MachineClass) }

func TestCluster(t *testing.T) {
	t.Parallel()
	other := func(c *clinic) *v1alpha1.MachineClass {
		class := testrig.Class("theirs", map[string]any{"labels": map[string]any{testrig.ClusterKey: testrig.OwnCluster}})
		class.Namespace = "other"
		c.Add(class)
		return class
	}
	for name, row := range map[string]struct {
		spoil func(*clinic)
		code  int
		says  []string
	}{
		"nothing": {nil, 0, []string{
			"FINE MachineClass shoot--demo/worker: provider, credentials and userData are present, " +
				"in Secret shoot--demo/credentials",
			"FINE manager: container machine-controller-manager of Deployment shoot--demo/mcm, " +
				"image registry/machine-controller-manager:v",
			"FINE manager's version: v", "FINE sidecar: container sidecar of Deployment shoot--demo/mcm",
			"FINE lease machine-controller-manager: pod-1 holds it", "FINE lease machine-controller: pod-1 holds it",
			"not tried: the sidecar's login to the target cluster https://kubernetes.default.svc: " +
				"it uses the Pod's own token, which must not leave the Pod\nnot tried: POST, PATCH and DELETE: "}},
		"a class without userData": {func(c *clinic) { delete(c.secret().Data, "userData") },
			1, []string{"WRONG MachineClass shoot--demo/worker: the key userData is missing in Secret shoot--demo/credentials"}},
		"a class whose Secret does not exist": {func(c *clinic) { c.remove(c.secret()) },
			1, []string{"WRONG MachineClass shoot--demo/worker: Secret shoot--demo/credentials does not exist"}},
		"a class whose Secret does not exist, with another named": {func(c *clinic) {
			c.secret().Name, c.Access.SecretName = "another", "another"
		}, 1, []string{"FINE credentials: project ",
			"WRONG MachineClass shoot--demo/worker: Secret shoot--demo/credentials does not exist; create the Secret"}},
		"a class whose key is no JSON": {func(c *clinic) {
			c.Access.Sessions.Config.NoAuth, c.secret().Data["serviceAccountKey"] = false, []byte("{")
		}, 1, []string{"WRONG MachineClass shoot--demo/worker: Secret shoot--demo/credentials of MachineClass worker: " +
			"the service-account key is not the JSON that STACKIT issues for a key: unexpected end of JSON input"}},
		"two regions": {func(c *clinic) {
			labels := map[string]any{testrig.ClusterKey: testrig.OwnCluster}
			c.Add(testrig.Class("abroad", map[string]any{"region": iaasmock.SecondRegion, "labels": labels}))
		}, 0, []string{"FINE reads (project " + iaasmock.DefaultProjectID + " in eu01): servers: allowed",
			"FINE reads (project " + iaasmock.DefaultProjectID + " in " + iaasmock.SecondRegion + "): servers: allowed"}},
		"a class that names no Secret": {func(c *clinic) { c.class().SecretRef = nil },
			1, []string{"WRONG MachineClass shoot--demo/worker: names no Secret"}},
		"a class of another provider": {func(c *clinic) { c.class().Provider = "aws" },
			2, []string{"UNKNOWN credentials: there is no MachineClass of STACKIT",
				`HINT MachineClass shoot--demo/worker: belongs to provider "aws"`}},
		"a class with a wrong providerSpec": {func(c *clinic) { c.class().ProviderSpec.Raw = []byte(`{"imageId":"x"}`) },
			1, []string{"WRONG MachineClass shoot--demo/worker: ", "error", "the subcommand validate shows all of them"}},
		"a class without a cluster label": {
			func(c *clinic) { c.class().ProviderSpec = testrig.Class("worker", nil).ProviderSpec },
			0, []string{"HINT MachineClass shoot--demo/worker: has no cluster label"}},
		"a namespace without classes": {func(c *clinic) { c.remove(c.class()) },
			2, []string{"UNKNOWN credentials: there is no MachineClass of STACKIT in namespace shoot--demo",
				"HINT MachineClasses of namespace shoot--demo: there are none"}},
		"another namespace's cluster label": {func(c *clinic) { other(c) },
			0, []string{"HINT cluster label kubernetes.io/cluster=shoot--demo--laptop: " +
				"also the label of MachineClass other/theirs: in one project, the two clusters delete each other's servers"}},
		"another cluster's label": {func(c *clinic) { other(c).ProviderSpec = testrig.Class("x", nil).ProviderSpec },
			0, nil},

		"no Deployment": {func(c *clinic) { c.remove(c.deployment) },
			1, []string{"WRONG manager: no Deployment of namespace shoot--demo has its container",
				"WRONG sidecar: no Deployment", "not tried: the sidecar's login to the target cluster: no Deployment"}},
		"no ready Pod": {func(c *clinic) { c.deployment.Status.ReadyReplicas = 0 },
			1, []string{"WRONG sidecar: ", "0 of 1 ready", "look at the Pods"}},
		"scaled to 0": {func(c *clinic) { c.deployment.Spec.Replicas = ptr.To[int32](0) },
			1, []string{"scaled to 0; " + scaledDown + beforeStart}},
		"nothing deployed, with Machines that are being migrated": {func(c *clinic) {
			c.remove(c.deployment)
			machine := testrig.Machine("worker-1", "worker", "")
			machine.Annotations = map[string]string{"stackit.cloud/migrated-machine": "true"}
			c.Add(machine)
		}, 1, []string{"WRONG sidecar: no Deployment of namespace shoot--demo has its container; " + asMigration}},
		"scaled to 0, with Machines that are being migrated": {func(c *clinic) {
			c.deployment.Spec.Replicas = ptr.To[int32](0)
			machine := testrig.Machine("worker-1", "worker", "")
			machine.Annotations = map[string]string{"stackit.cloud/migrated-machine": "true"}
			c.Add(machine)
		}, 1, []string{"WRONG manager: ", "scaled to 0; " + asMigration, "WRONG sidecar: "}},
		"another provider's manager, scaled to 0": {func(c *clinic) {
			c.deployment.Spec.Replicas, c.sidecar.Image = ptr.To[int32](0), "a/machine-controller-manager-provider-openstack:v1"
		}, 1, []string{"WRONG manager: ", "scaled to 0; " + asMigration,
			"WRONG sidecar: no Deployment of namespace shoot--demo has its container, " +
				"but Deployment mcm has image a/machine"}},
		"one of two ready": {func(c *clinic) { c.deployment.Spec.Replicas = ptr.To[int32](2) },
			0, []string{"HINT sidecar: ", "1 of 2 ready"}},
		"two that do not elect": {func(c *clinic) {
			c.deployment.Spec.Replicas, c.sidecar.Args = ptr.To[int32](2), append(c.sidecar.Args, leaderElectOff)
		}, 1, []string{"the replicas work against each other"}},
		"two whose command says so": {func(c *clinic) {
			c.deployment.Spec.Replicas, c.sidecar.Command = ptr.To[int32](2), []string{"/sidecar", leaderElectOff}
		}, 1, []string{"the replicas work against each other"}},
		"another namespace's sidecar": {func(c *clinic) { c.sidecar.Args = append(c.sidecar.Args, "--namespace=other") },
			1, []string{"WRONG sidecar: ", "--namespace=other"}},
		"another namespace's, in an argument of its own": {
			func(c *clinic) { c.sidecar.Args = append(c.sidecar.Args, "--namespace", "other") },
			1, []string{"WRONG sidecar: ", "--namespace=other"}},
		"another manager": {func(c *clinic) { c.manager.Image = "a/machine-controller-manager:v0.50.0" },
			1, []string{"WRONG manager's version: v0.50.0, but the sidecar's library is v"}},
		"a manager without a tag": {func(c *clinic) { c.manager.Image = "a/machine-controller-manager@sha256:0" },
			2, []string{"UNKNOWN manager's version: "}},
		"another provider's sidecar": {func(c *clinic) { c.sidecar.Image = "a/machine-controller-manager-provider-aws:v1" },
			1, []string{"WRONG sidecar: no Deployment", asMigration}},
		"the shoot in place of the seed": {func(c *clinic) {
			c.Funcs.List = func(ctx context.Context, w client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
				if _, isOurs := list.(*v1alpha1.MachineList); isOurs {
					return apierrors.NewGenericServerResponse(404, "list", schema.GroupResource{}, "",
						"the server could not find the requested resource", 0, true)
				}
				return w.List(ctx, list, o...)
			}
		}, 2, []string{"UNKNOWN cluster with the Machines: not checked: " +
			"the resource Machine does not exist in this cluster: it may be the cluster that the machines join"}},
		"a namespace that is mistyped": {func(c *clinic) { c.Access.Namespace = "typo" },
			2, []string{"UNKNOWN cluster with the Machines: not checked: namespace typo does not exist"}},
		"a Secret of another namespace": {
			func(c *clinic) { c.secret().Namespace, c.class().SecretRef.Namespace = "other", "other" },
			1, []string{"WRONG MachineClass shoot--demo/worker: Secret other/credentials does not exist " +
				"for the sidecar, which reads only Secrets of its own namespace"}},

		"a lease that does not exist": {func(c *clinic) { c.remove(c.leases[sidecarName]) },
			1, []string{"WRONG lease machine-controller: does not exist: no Pod has ever led"}},
		"a lease nobody renews": {
			func(c *clinic) { c.leases[sidecarName].Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Unix(0, 0))) },
			1, []string{"WRONG lease machine-controller: pod-1 holds it, renewed ", "for 15s: no Pod leads now"}},
		"leases nobody needs": {func(c *clinic) {
			c.manager.Args, c.sidecar.Command = []string{leaderElectOff}, []string{"/sidecar", "--leader-elect=0"}
			c.leases[managerName].Spec.HolderIdentity = nil
			c.remove(c.leases[sidecarName])
		}, 0, []string{"FINE lease machine-controller-manager: not used: --leader-elect=false",
			"FINE lease machine-controller: not used: --leader-elect=false"}},
		"a lease nobody holds": {func(c *clinic) { c.leases[managerName].Spec.HolderIdentity = nil },
			1, []string{"WRONG lease machine-controller-manager: has no holder"}},

		"no target cluster": {func(c *clinic) { c.sidecar.Args[0] = "--target-kubeconfig=none" },
			0, []string{"FINE login to the target cluster: the sidecar has no target cluster"}},
		"the sidecar's own cluster": {func(c *clinic) { c.sidecar.Args = c.sidecar.Args[1:] },
			0, []string{"not tried: the sidecar's login to the target cluster, which is its own cluster: it uses the Pod's"}},
		"a Secret of which one key is mounted": {func(c *clinic) {
			c.target.Data["config"] = c.target.Data["kubeconfig"]
			delete(c.target.Data, "kubeconfig")
			c.deployment.Spec.Template.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName: "target", Items: []corev1.KeyToPath{{Key: "config", Path: "kubeconfig"}}}}
		}, 0, []string{"not tried: the sidecar's login to the target cluster https://kubernetes.default.svc: "}},
		"no kubeconfig": {func(c *clinic) { c.target.Data = nil },
			1, []string{"WRONG login to the target cluster: no Secret or ConfigMap that the sidecar mounts has a kubeconfig " +
				"with a current context for --target-kubeconfig=/var/run/target/kubeconfig", "mounts at /var/run/target"}},
		"two Secrets, the last is mounted": {func(c *clinic) {
			projected := c.deployment.Spec.Template.Spec.Volumes[0].Projected
			last := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testrig.Namespace, Name: "a-last"}}
			last.Data = kubeconfig("https://last", "", "token: canary")
			source := &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: last.Name}}
			projected.Sources = append(projected.Sources, corev1.VolumeProjection{Secret: source})
			c.Add(last)
		}, 0, []string{"FINE login to the target cluster: https://last, "}},
		"a kubeconfig in a ConfigMap, with a token in a Secret": {func(c *clinic) {
			reference := corev1.LocalObjectReference{Name: "target"}
			c.Add(&corev1.ConfigMap{ObjectMeta: c.target.ObjectMeta, Data: map[string]string{
				"kubeconfig": string(kubeconfig("https://kube-apiserver", "", "tokenFile: /var/run/target/token")["kubeconfig"])}})
			c.target.Data["token"] = []byte("canary") // beside a kubeconfig of before, which is not mounted
			c.deployment.Spec.Template.Spec.Volumes[0].Projected.Sources = []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: reference}},
				{Secret: &corev1.SecretProjection{LocalObjectReference: reference,
					Items: []corev1.KeyToPath{{Key: "token", Path: "token"}}}},
			}
		}, 0, []string{"FINE login to the target cluster: https://kube-apiserver, expiry unknown"}},
		"a kubeconfig without its user": {
			func(c *clinic) {
				text := string(c.target.Data["kubeconfig"])
				c.target.Data["kubeconfig"] = []byte(strings.Replace(text, "user: u}", "user: v}", 1))
			},
			1, []string{"the current context of the kubeconfig for --target-kubeconfig=/var/run/target/kubeconfig refers to"}},
		"no Secret": {func(c *clinic) { c.remove(c.target) },
			2, []string{"UNKNOWN login to the target cluster: cannot be read: reading Secret target"}},
		"no ConfigMap": {func(c *clinic) {
			projected := c.deployment.Spec.Template.Spec.Volumes[0].Projected
			projected.Sources = append(projected.Sources, corev1.VolumeProjection{
				ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}}})
		}, 2, []string{"UNKNOWN login to the target cluster: cannot be read: reading ConfigMap none"}},
		"a program instead": {
			func(c *clinic) { c.target.Data = kubeconfig("https://x", "", "exec: {command: touch, args: [/tmp/x]}") },
			1, []string{"has no token or certificate, inline or in a file that the sidecar mounts"}},
		"a file of somebody": {func(c *clinic) { c.target.Data = kubeconfig("https://x", "", "tokenFile: /etc/passwd") },
			1, []string{"has no token or certificate"}},
		"a name that Pods know": {
			func(c *clinic) { c.target.Data = kubeconfig("https://kube-apiserver", "", "token: canary") },
			0, []string{"FINE login to the target cluster: https://kube-apiserver, expiry unknown",
				"not tried: reading Nodes with the sidecar's login: only Pods can resolve kube-apiserver"}},
		"a cluster that is not up": {
			func(c *clinic) { c.target.Data = kubeconfig("https://127.0.0.1:1", "", "token: canary") },
			2, []string{"UNKNOWN login to the target cluster: https://127.0.0.1:1", "cannot read Nodes: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t)
			if row.spoil != nil {
				row.spoil(c)
			}
			expect(t, examineRig(t, c.Rig), row.code, row.says...)
		})
	}
}

// The sidecar's login is tried: one list of Nodes.
func TestTargetLogin(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasSuffix(r.Header.Get("Authorization"), ".good") || r.URL.String() != "/api/v1/nodes?limit=1" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure",` +
				`"reason":"Unauthorized","message":"Unauthorized","code":401}`))
			return
		}
		_, _ = w.Write([]byte(`{"kind":"NodeList","apiVersion":"v1","items":[]}`))
	}))
	t.Cleanup(server.Close)
	ca := base64.StdEncoding.EncodeToString(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	// token was issued some time ago, and expires after some time.
	token := func(age, left time.Duration, signature string) string {
		claims := jwt.RegisteredClaims{
			IssuedAt: jwt.NewNumericDate(time.Now().Add(-age)), ExpiresAt: jwt.NewNumericDate(time.Now().Add(left))}
		unsigned, err := jwt.NewWithClaims(jwt.SigningMethodNone, claims).SignedString(jwt.UnsafeAllowNoneSignatureType)
		if err != nil {
			t.Fatal(err)
		}
		return unsigned + signature
	}
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	const (
		day           = 24 * time.Hour
		byToken       = "tokenFile: /var/run/target/token"
		byCertificate = "client-certificate: /var/run/target/tls.crt, client-key: /var/run/target/tls.key"
	)
	subject := "login to the target cluster: " + server.URL
	until := ", valid until " + server.Certificate().NotAfter.UTC().Format(time.DateTime) + " UTC"
	for name, row := range map[string]struct {
		login, token string
		code         int
		says         string
	}{
		"taken":               {byToken, token(22*day, 8*day, "good"), 0, "FINE " + subject + ", valid until "},
		"renewed by Gardener": {byToken, token(9*time.Hour, 3*time.Hour, "good"), 0, "FINE " + subject + ", valid until "},
		"expires soon":        {byToken, token(24*day, 6*day, "good"), 0, "HINT " + subject + ", expires at "},
		"refused": {byToken, token(0, time.Hour, "bad"), 1,
			"cannot read Nodes: Unauthorized; renew the login in the sidecar's"},
		"expired": {byToken, token(24*day, -time.Hour, "good"), 1, "WRONG " + subject + ", expired at "},
		"a certificate that is refused": {byCertificate, "",
			1, "WRONG " + subject + until + ": cannot read Nodes: Unauthorized; renew"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t)
			c.target.Data = kubeconfig(server.URL, ca, row.login)
			c.target.Data["token"] = []byte(row.token + "\n")
			c.target.Data["tls.crt"], _ = base64.StdEncoding.DecodeString(ca)
			c.target.Data["tls.key"] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
			expect(t, examineRig(t, c.Rig), row.code, row.says)
		})
	}
}

// What a cluster does not show is unknown, and said once if it does not answer at all.
func TestClusterThatDoesNotShow(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(v1alpha1.Resource("machines"), "", errors.New("no right"))
	lists := func(err error, namespaces ...string) (funcs interceptor.Funcs) {
		funcs.List = func(ctx context.Context, c client.WithWatch, into client.ObjectList, o ...client.ListOption) error {
			if slices.Contains(namespaces, (&client.ListOptions{}).ApplyOptions(o).Namespace) {
				return err
			}
			return c.List(ctx, into, o...)
		}
		return funcs
	}
	var gets interceptor.Funcs
	gets.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return forbidden
	}
	for name, row := range map[string]struct {
		funcs interceptor.Funcs
		code  int
		says  []string
		most  int
	}{
		"lists are forbidden": {lists(forbidden, "", testrig.Namespace), 2,
			[]string{"UNKNOWN Machines: cannot be read: ", "UNKNOWN MachineClasses of namespace shoot--demo: cannot be read: ",
				"UNKNOWN manager and sidecar: cannot be read: ", "log in as a user who has this permission"}, 4},
		"lists of all namespaces are forbidden": {lists(forbidden, ""), 0, []string{
			"not tried: whether MachineClasses of other namespaces have this cluster label: they cannot be read"}, 0},
		"objects are forbidden": {gets, 2,
			[]string{"UNKNOWN MachineClass shoot--demo/worker: cannot be read: reading Secret shoot--demo/credentials: ",
				"UNKNOWN lease machine-controller: cannot be read: ",
				"UNKNOWN login to the target cluster: cannot be read: reading Secret target "}, 4},
		"down": {lists(errors.New("connection refused"), "", testrig.Namespace), 2,
			[]string{"UNKNOWN cluster with the Machines: not checked: listing Machines in namespace shoot--demo: " +
				"connection refused; name a kubeconfig", "not tried: the API: "}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t)
			c.Funcs = row.funcs
			result := examineRig(t, c.Rig)
			expect(t, result, row.code, row.says...)
			if count := result.Findings.Count()["unknown"]; count > row.most {
				t.Errorf("said %d times", count)
			}
		})
	}
}

func TestTheVersionIsThatOfTheManifests(t *testing.T) {
	for file, pattern := range map[string]string{
		"go.mod":                             `gardener/machine-controller-manager ` + managerVersion + `\n`,
		"kubernetes/control/deployment.yaml": `machine-controller-manager:` + managerVersion + `\n`,
		"kubernetes/upgrade.md":              `\[go.mod\]\(../go.mod\), ` + managerVersion + ` `,
	} {
		if text, err := os.ReadFile("../../../" + file); err != nil || !regexp.MustCompile(pattern).Match(text) {
			t.Errorf("%s has no %q: %v", file, pattern, err)
		}
	}
}
