// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	tokens "github.com/golang-jwt/jwt/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// renewal is the name of everything in kubernetes/token-renewal.
const renewal = "machine-controller-manager-token-renewal"

var _ = Describe("The CronJob under kubernetes/", long, func() {
	It("renews the token for the target cluster, "+
		"may do nothing else, and the pod goes on with the new one", func(ctx SpecContext) {
		c := newCluster(startEnvironment(ctx, localenv.WithNamespace("machines"), localenv.WithTargetCluster(),
			localenv.WithoutManager(), localenv.WithoutSidecar()))
		at := c.newOperator()
		at.run(ctx, "(cd kubernetes/control && kustomize edit set namespace machines)")
		blocks := shellBlocks("Two clusters")
		Expect(blocks).To(HaveLen(5))
		at.run(ctx, blocks[0])
		at.run(ctx, blocks[1])
		at.run(ctx, blocks[2])
		objects := append(build(at.folder+"/kubernetes/control"), build(at.folder+"/kubernetes/target")...)
		job, target := serviceAccount{c.env.Namespace(), renewal}, serviceAccount{metav1.NamespaceSystem, account}
		serviceAccount{c.env.Namespace(), account}.awaitRights(ctx, c.Client, controlRights(c.env.Namespace()))
		target.awaitRights(ctx, c.target, append(slices.Clone(targetRights), authorizationv1.ResourceAttributes{
			Namespace: target.namespace, Verb: "create", Resource: "serviceaccounts", Subresource: "token", Name: target.name}))
		job.awaitRights(ctx, c.Client, []authorizationv1.ResourceAttributes{
			{Namespace: job.namespace, Verb: "patch", Resource: "secrets", Name: targetLogin}})

		By("starting the pod with a token that ends with a Secret of the target cluster")
		end := c.bindToken(ctx, target)
		before := c.targetToken(ctx)
		pod := c.startPod(ctx, c.deploymentIn(ctx, objects), "only")
		Eventually(ctx, c.leader).WithTimeout(upTimeout).WithPolling(poll).ShouldNot(BeEmpty())

		By("running the Job as a kubelet does")
		at.run(ctx, blocks[3])
		c.runJob(ctx, "token-renewal-1")
		after := c.targetToken(ctx)
		Expect(after).NotTo(Equal(before))
		var claims tokens.RegisteredClaims
		_, _, err := tokens.NewParser().ParseUnverified(after, &claims)
		Expect(err).NotTo(HaveOccurred())
		Expect(claims.Subject).To(Equal("system:serviceaccount:kube-system:" + account))
		Expect(claims.ExpiresAt.Sub(claims.IssuedAt.Time)).To(Equal(720 * time.Hour))

		By("ending the first token: the pod makes a machine with the new one")
		Expect(c.env.MountPod(ctx, pod)).To(Succeed())
		end(before)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
		c.createMachine(ctx, "machine-000-x", "small")
		Eventually(ctx, c.running).WithTimeout(afterCrash).WithPolling(poll).Should(HaveLen(1))
		c.expectAllowed()
		requests := c.requests()
		own := slices.DeleteFunc(slices.Clone(objects),
			func(o *unstructured.Unstructured) bool { return o.GetName() != renewal })
		for _, right := range grantedRights(own) {
			Expect(slices.ContainsFunc(requests, right.covers)).To(BeTrue(), "nobody used the right to %s", right)
		}

		c.expectNothingElse(ctx, job, target)
		at.run(ctx, blocks[4])
		Expect(c.targetToken(ctx)).NotTo(BeElementOf(before, after), "a new token by hand")
	})
})

// operator runs the commands of kubernetes/README.md in a folder with the manifests, as somebody
// who may do everything in the clusters "control" and "target".
type operator struct {
	folder string
	env    []string
}

func (c *cluster) newOperator() *operator {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	Expect(os.Rename(copyOfManifests(), filepath.Join(folder, "kubernetes"))).To(Succeed())
	// As much of the program as is needed here.
	Expect(os.WriteFile(filepath.Join(folder, "kustomize"), []byte(`#!/bin/sh -e
case "$1 $2 $3" in
"edit set namespace") sed -i "s/^namespace: .*/namespace: $4/" kustomization.yaml ;;
"edit add component")
  grep -q ^components: kustomization.yaml || echo components: >>kustomization.yaml
  echo "  - $4" >>kustomization.yaml ;;
*) exit 64 ;;
esac
`), 0o700)).To(Succeed())
	config := clientcmdapi.NewConfig()
	for name, path := range map[string]string{"control": c.env.KubeconfigPath(), "target": c.env.TargetKubeconfigPath()} {
		own, err := clientcmd.LoadFromFile(path)
		Expect(err).NotTo(HaveOccurred())
		current := own.Contexts[own.CurrentContext]
		config.Clusters[name], config.AuthInfos[name] = own.Clusters[current.Cluster], own.AuthInfos[current.AuthInfo]
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, kubeconfig)).To(Succeed())
	return &operator{folder, []string{"HOME=" + folder, "KUBECONFIG=" + kubeconfig,
		"PATH=" + folder + ":" + filepath.Dir(built("bin/kubectl")) + ":/usr/bin:/bin"}}
}

func (o *operator) run(ctx context.Context, commands string) {
	GinkgoHelper()
	shell := exec.CommandContext(ctx, "sh", "-ec", commands)
	shell.Dir, shell.Env = o.folder, o.env
	output, err := shell.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s\n%s", commands, output)
}

// shellBlocks returns the commands in a section of kubernetes/README.md.
func shellBlocks(heading string) []string {
	GinkgoHelper()
	var blocks []string
	for _, match := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section(heading), -1) {
		blocks = append(blocks, match[1])
	}
	return blocks
}

// section returns a section of kubernetes/README.md.
func section(heading string) string {
	GinkgoHelper()
	page, err := os.ReadFile(filepath.Join(root(), "kubernetes", "README.md"))
	Expect(err).NotTo(HaveOccurred())
	_, text, found := strings.Cut(string(page), "\n## "+heading+"\n")
	Expect(found).To(BeTrue(), heading)
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// targetToken returns the token in the Secret that the pod mounts.
func (c *cluster) targetToken(ctx context.Context) string {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(c.Get(ctx, client.ObjectKey{Namespace: c.env.Namespace(), Name: targetLogin}, secret)).To(Succeed())
	return string(secret.Data["token"])
}

// bindToken replaces the token in that Secret by one that end ends.
func (c *cluster) bindToken(ctx context.Context, user serviceAccount) (end func(token string)) {
	GinkgoHelper()
	holder := secretIn(user.namespace, "holder", corev1.SecretTypeOpaque)
	Expect(c.target.Create(ctx, holder)).To(Succeed())
	bound, err := user.token(ctx, c.target, authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: holder.Name,
			UID: holder.UID}})
	Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.env.Namespace(), Name: targetLogin}}
	change(ctx, c, secret, func() { secret.Data["token"] = []byte(bound) })
	return func(token string) {
		GinkgoHelper()
		Expect(c.target.Delete(ctx, holder)).To(Succeed())
		config := c.env.TargetRESTConfig()
		config.CertData, config.KeyData, config.BearerToken = nil, nil, token
		ended, err := client.New(config, client.Options{Scheme: c.target.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func(ctx context.Context) error { return ended.List(ctx, &corev1.NodeList{}) }).
			WithTimeout(upTimeout).WithPolling(poll).Should(Satisfy(apierrors.IsUnauthorized))
	}
}

// runJob runs the container of a Job, with the files and rights of its Pod, and the shell that the init container
// copies.
func (c *cluster) runJob(ctx context.Context, name string) {
	GinkgoHelper()
	job := &batchv1.Job{}
	Expect(c.Get(ctx, client.ObjectKey{Namespace: c.env.Namespace(), Name: name}, job)).To(Succeed())
	pod := &corev1.Pod{ObjectMeta: job.ObjectMeta, Spec: job.Spec.Template.Spec}
	Expect(c.env.MountPod(ctx, pod)).To(Succeed())
	Expect(pod.Spec.InitContainers).
		To(HaveExactElements(HaveField("Command", []string{"cp", "/bin/busybox", "/shell/sh"})))
	Expect(os.Symlink("/bin/sh", c.env.PodPath(pod, "/shell/sh"))).To(Succeed())
	token, err := localenv.ServiceAccountToken(ctx, c.Client, pod.Namespace, pod.Spec.ServiceAccountName)
	Expect(err).NotTo(HaveOccurred())
	config := c.env.RESTConfig()
	login := clientcmdapi.NewConfig()
	login.Clusters["own"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	login.AuthInfos["own"] = &clientcmdapi.AuthInfo{Token: token}
	login.Contexts["own"] = &clientcmdapi.Context{Cluster: "own", AuthInfo: "own"}
	login.CurrentContext = "own"
	folder := GinkgoT().TempDir()
	Expect(clientcmd.WriteToFile(*login, filepath.Join(folder, "kubeconfig"))).To(Succeed())

	container := pod.Spec.Containers[0]
	args := append(container.Command[1:], container.Args...)
	for i := range args {
		args[i] = c.env.PodPath(pod, args[i])
	}
	process := exec.CommandContext(ctx, c.env.PodPath(pod, container.Command[0]), args...)
	process.Env = []string{"PATH=" + filepath.Dir(built("bin/kubectl")), "HOME=" + folder,
		"KUBECONFIG=" + filepath.Join(folder, "kubeconfig"), "POD_NAMESPACE=" + pod.Namespace}
	output, err := process.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	Expect(string(output)).To(Equal("secret/machine-controller-manager-target patched\n"))
}

// expectNothingElse tries to reach other Secrets and accounts, as the Job in the control and in the target cluster.
func (c *cluster) expectNothingElse(ctx context.Context, job, target serviceAccount) {
	GinkgoHelper()
	control := job.client(ctx, c.Client, c.env.RESTConfig())
	inTarget := target.client(ctx, c.target, c.env.TargetRESTConfig())
	login := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: job.namespace, Name: targetLogin}}
	other := secretIn(job.namespace, secretName, corev1.SecretTypeOpaque)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"stringData": {"token": "mine"}}`))
	tokenOf := func(in client.Client, namespace, name string) error {
		_, err := serviceAccount{namespace, name}.token(ctx, in, authenticationv1.TokenRequestSpec{})
		return err
	}
	for what, err := range map[string]error{
		"to read another Secret":         control.Get(ctx, client.ObjectKeyFromObject(other), &corev1.Secret{}),
		"to patch another Secret":        control.Patch(ctx, other, patch),
		"to list Secrets":                control.List(ctx, &corev1.SecretList{}, client.InNamespace(job.namespace)),
		"to delete its Secret":           control.Delete(ctx, login),
		"to patch the kubeconfig":        control.Patch(ctx, &corev1.ConfigMap{ObjectMeta: login.ObjectMeta}, patch),
		"to get the pod's token":         tokenOf(control, job.namespace, account),
		"to get another account's token": tokenOf(inTarget, target.namespace, "default"),
	} {
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: %v", what, err)
	}
}
