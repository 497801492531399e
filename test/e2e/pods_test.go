// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// render returns the objects of a folder of the repository with a kustomization.
func render(folder string) []*unstructured.Unstructured {
	GinkgoHelper()
	return build(filepath.Join(root(), folder))
}

// build returns the objects of any folder with a kustomization.
func build(path string) []*unstructured.Unstructured {
	GinkgoHelper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), path)
	Expect(err).NotTo(HaveOccurred())
	content, err := resources.AsYaml()
	Expect(err).NotTo(HaveOccurred())
	objects, err := localenv.ParseManifests(content)
	Expect(err).NotTo(HaveOccurred())
	Expect(objects).NotTo(BeEmpty())
	return objects
}

// copyOfManifests returns a copy of the folder kubernetes/, to be changed.
func copyOfManifests() string {
	GinkgoHelper()
	folder := filepath.Join(GinkgoT().TempDir(), "kubernetes")
	Expect(os.CopyFS(folder, os.DirFS(filepath.Join(root(), "kubernetes")))).To(Succeed())
	return folder
}

// renderIn is render of kubernetes/ after README.md's first step, which gives the pod a
// namespace, and after the components of that folder were added to control, as
// "kustomize edit add component" does.
func renderIn(namespace string, components ...string) []*unstructured.Unstructured {
	GinkgoHelper()
	return renderFolder(".", namespace, components...)
}

// renderFolder is renderIn for a folder below kubernetes/.
func renderFolder(of, namespace string, components ...string) []*unstructured.Unstructured {
	GinkgoHelper()
	folder := copyOfManifests()
	path := filepath.Join(folder, "control", "kustomization.yaml")
	content, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	const inDefault = "\nnamespace: default\n"
	Expect(string(content)).To(ContainSubstring(inDefault))
	edited := strings.Replace(string(content), inDefault, "\nnamespace: "+namespace+"\n", 1)
	for i, component := range components {
		if i == 0 {
			edited += "components:\n"
		}
		edited += "  - ../" + component + "\n"
	}
	Expect(os.WriteFile(path, []byte(edited), 0o600)).To(Succeed())
	return build(filepath.Join(folder, of))
}

// serviceAccount is whom a Pod logs in as.
type serviceAccount struct{ namespace, name string }

// awaitRights returns when the API server has taken note of the bindings of these rights.
func (s serviceAccount) awaitRights(ctx context.Context, c client.Client, rights []authorizationv1.ResourceAttributes) {
	GinkgoHelper()
	for _, right := range rights {
		Eventually(ctx, func(ctx context.Context) (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + s.namespace + ":" + s.name, ResourceAttributes: &right,
			}}
			err := c.Create(ctx, review)
			return review.Status.Allowed, err
		}).WithPolling(poll/10).WithTimeout(upTimeout).Should(BeTrue(), "%s may not %s %s",
			s.name, right.Verb, right.Resource)
	}
}

// grant gives a service account a right to Secrets that the manifests do not give, until it is revoked.
func (s serviceAccount) grant(ctx context.Context, c client.Client, namespace, verb string) (revoke func()) {
	GinkgoHelper()
	named := metav1.ObjectMeta{Namespace: namespace, Name: s.name + "-more"}
	Expect(c.Create(ctx, &rbacv1.Role{ObjectMeta: named,
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{verb}}}})).
		To(Succeed())
	binding := &rbacv1.RoleBinding{ObjectMeta: named,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: s.name}}}
	Expect(c.Create(ctx, binding)).To(Succeed())
	return func() { Expect(c.Delete(ctx, binding)).To(Succeed()) }
}

// client returns a client that is logged in as a service account of in, which config reaches.
func (s serviceAccount) client(ctx context.Context, in client.Client, config *rest.Config) client.Client {
	GinkgoHelper()
	token, err := localenv.ServiceAccountToken(ctx, in, s.namespace, s.name)
	Expect(err).NotTo(HaveOccurred())
	config = rest.AnonymousClientConfig(config) // not the administrator's certificate
	config.BearerToken = token
	loggedIn, err := client.New(config, client.Options{Scheme: in.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return loggedIn
}

// token asks for a token of a service account.
func (s serviceAccount) token(
	ctx context.Context, in client.Client, spec authenticationv1.TokenRequestSpec,
) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: spec}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name}}
	err := in.SubResource("token").Create(ctx, owner, request)
	return request.Status.Token, err
}

// controlRights and targetRights have one of each binding.
func controlRights(namespace string) []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{{Group: "machine.sapcloud.io", Resource: "machines", Verb: "list",
		Namespace: namespace}}
}

var targetRights = []authorizationv1.ResourceAttributes{
	{Resource: "nodes", Verb: "list"},
	{Resource: "secrets", Verb: "create", Namespace: metav1.NamespaceSystem},
}

// applyAll applies the objects of a kustomization to the control cluster.
func (c *cluster) applyAll(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := c.env.Apply(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// deploymentIn returns the Deployment among objects, as it is stored.
func (c *cluster) deploymentIn(ctx context.Context, objects []*unstructured.Unstructured) *appsv1.Deployment {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			Expect(c.Get(ctx, client.ObjectKeyFromObject(object), deployment)).To(Succeed())
		}
	}
	Expect(deployment.Name).NotTo(BeEmpty(), "there is no Deployment")
	return deployment
}

// podOf returns a Pod of a Deployment.
func podOf(deployment *appsv1.Deployment, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: name},
		Spec:       *deployment.Spec.Template.Spec.DeepCopy(),
	}
}

// startPod starts a Pod of a Deployment that reaches the mock instead of STACKIT.
func (c *cluster) startPod(ctx context.Context, deployment *appsv1.Deployment, name string) *corev1.Pod {
	GinkgoHelper()
	pod := podOf(deployment, name)
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		for _, variable := range c.env.CloudEnvironment() {
			name, value, _ := strings.Cut(variable, "=")
			container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
		}
	}
	Expect(c.env.StartPod(ctx, pod)).To(Succeed())
	return pod
}

// createTargetKubeconfig makes the ConfigMap and the Secret that kubernetes/control needs, as
// kubernetes/README.md has them.
func (c *cluster) createTargetKubeconfig(ctx context.Context) {
	GinkgoHelper()
	token, err := localenv.ServiceAccountToken(ctx, c.target, metav1.NamespaceSystem, account)
	Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := clientcmd.Write(c.targetKubeconfig("/var/run/target/token"))
	Expect(err).NotTo(HaveOccurred())
	named := metav1.ObjectMeta{Name: targetLogin, Namespace: c.env.Namespace()}
	Expect(c.Create(ctx, &corev1.ConfigMap{ObjectMeta: named, Data: map[string]string{"kubeconfig": string(kubeconfig)}})).
		To(Succeed())
	Expect(c.Create(ctx, &corev1.Secret{ObjectMeta: named, Data: map[string][]byte{"token": []byte(token)}})).To(Succeed())
}

// targetKubeconfig logs in to the target cluster with the token in a file.
func (c *cluster) targetKubeconfig(tokenFile string) clientcmdapi.Config {
	config := c.env.TargetRESTConfig()
	return clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			"target": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{account: {TokenFile: tokenFile}},
		Contexts:       map[string]*clientcmdapi.Context{"target": {Cluster: "target", AuthInfo: account}},
		CurrentContext: "target",
	}
}

// targetLogin names the ConfigMap and the Secret with the login to the target cluster.
const targetLogin = "machine-controller-manager-target"

// plantKubeconfig puts into the Secret with the target's token what somebody who may write Secrets could put there to
// have the Pod run a program. The program would make the file whose path is returned.
func (c *cluster) plantKubeconfig(ctx context.Context) (made string) {
	GinkgoHelper()
	made = filepath.Join(GinkgoT().TempDir(), "made")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.env.Namespace(), Name: targetLogin}}
	_, err := controllerutil.CreateOrUpdate(ctx, c.Client, secret, func() error {
		secret.StringData = map[string]string{"kubeconfig": fmt.Sprintf(`{apiVersion: v1, kind: Config,
current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1", insecure-skip-tls-verify: true}}],
users: [{name: u, user: {
  exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [%q], interactiveMode: Never}}}]}`, made)}
		return nil
	})
	Expect(err).NotTo(HaveOccurred())
	return made
}

// leader returns the name of the Pod whose sidecar leads, empty if none ever has.
func (c *cluster) leader(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	err := c.Get(ctx, client.ObjectKey{Namespace: c.env.Namespace(), Name: "machine-controller"}, lease)
	return ptr.Deref(lease.Spec.HolderIdentity, ""), client.IgnoreNotFound(err)
}

// podLogs returns what each container of a Pod has logged.
func (c *cluster) podLogs(pod *corev1.Pod) map[string]string {
	GinkgoHelper()
	logs := map[string]string{}
	for _, container := range pod.Spec.Containers {
		var err error
		logs[container.Name], err = c.env.Logs(localenv.PodPart(pod.Name, container.Name))
		Expect(err).NotTo(HaveOccurred())
	}
	return logs
}

func (c *cluster) expectLed(pod *corev1.Pod) {
	GinkgoHelper()
	Expect(c.podLogs(pod)).To(HaveEach(ContainSubstring("Successfully acquired lease")), "of Pod %s", pod.Name)
}

// createPodOn makes a Pod on a Node, to be evicted. There is no kubelet: without a
// grace period it is gone at once.
func (c *cluster) createPodOn(ctx context.Context, node string) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "to-be-evicted-", Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers:                    []corev1.Container{{Name: "idle", Image: "idle"}},
		},
	}
	Expect(c.target.Create(ctx, pod)).To(Succeed())
	return pod
}

// attachVolumeTo makes a volume attached to a Node. There is no kubelet that would detach it.
func (c *cluster) attachVolumeTo(ctx context.Context, nodeName string) *storagev1.VolumeAttachment {
	GinkgoHelper()
	attachment := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "attached"},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "csi.test", NodeName: nodeName,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("data")},
		},
	}
	Expect(c.target.Create(ctx, attachment)).To(Succeed())
	node := &corev1.Node{}
	Expect(c.target.Get(ctx, client.ObjectKey{Name: nodeName}, node)).To(Succeed())
	before := client.MergeFrom(node.DeepCopy())
	node.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "csi.test^data"}}
	Expect(c.target.Status().Patch(ctx, node, before)).To(Succeed())
	return attachment
}

// forceDeletionOf has the manager delete a Machine, once it goes, without evicting its Pods.
func (c *cluster) forceDeletionOf(ctx context.Context, name string) {
	GinkgoHelper()
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: c.env.Namespace(), Name: name}}
	change(ctx, c, machine, func() { machine.Labels["force-deletion"] = "True" })
}
