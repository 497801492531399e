// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

const (
	targetSubject = "rights in the target cluster"
	// ownToken is where a Pod has the token of its own service account.
	ownToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	// ownCluster is how a Pod reaches the cluster that it runs in.
	ownCluster = "https://kubernetes.default.svc"
)

// examineTarget finds out whether the target cluster can be asked. If not, everything about
// it is left out.
func (d *Doctor) examineTarget(context.Context) {
	const subject = "target cluster"
	switch {
	case d.Target != nil && d.Target != d.Control:
		d.looking(subject)
		if !d.examineVersion(subject, d.TargetVersion) {
			d.Target = nil
		}
	case d.Target == nil && d.TargetError != nil:
		d.unconnected(subject, d.TargetError, "name its kubeconfig with --target-kubeconfig")
	}
}

// targetLogin is how the sidecar reaches the target cluster.
type targetLogin struct {
	server string
	who    *user
}

var errNoTarget = errors.New("the sidecar has no target cluster")

// examineTargetRights asks what the sidecar may do in the target cluster, as whom its
// kubeconfig logs in. own is its service account in the control cluster.
func (d *Doctor) examineTargetRights(ctx context.Context, sidecar *workload, own *user) {
	if sidecar == nil || d.Target == nil {
		return
	}
	d.looking(targetSubject)
	login, err := d.targetLogin(ctx, sidecar, own)
	switch {
	case errors.Is(err, errNoTarget):
		return
	case err != nil:
		d.unknown(targetSubject, "not looked at: "+report.OneLine(err.Error()), "compare with kubernetes/target/rbac.yaml")
	case d.Target == d.Control && login.server != ownCluster:
		d.unknown(targetSubject, fmt.Sprintf("not looked at: the sidecar's target cluster is another one, %s", login.server),
			"name a kubeconfig that reaches it with --target-kubeconfig")
	default:
		d.reportRights(ctx, d.Target, login.who, targetSubject, "apply kubernetes/target/rbac.yaml",
			map[string][]rbacv1.PolicyRule{metav1.NamespaceAll: targetRules, metav1.NamespaceSystem: bootstrapTokenRules})
	}
}

// targetLogin reads the Secret that has the sidecar's kubeconfig. No error repeats anything
// of it.
func (d *Doctor) targetLogin(ctx context.Context, sidecar *workload, own *user) (*targetLogin, error) {
	file := flagOf(sidecar.container, "--target-kubeconfig")
	switch file {
	case "none":
		return nil, errNoTarget
	case "":
		return nil, errors.New("the sidecar's Deployment has no --target-kubeconfig")
	}
	files, err := d.mountedFiles(ctx, sidecar, path.Dir(file))
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(files[path.Base(file)])
	if err != nil || config.Contexts[config.CurrentContext] == nil {
		return nil, fmt.Errorf("no Secret of the sidecar has a kubeconfig for %s", file)
	}
	current := config.Contexts[config.CurrentContext]
	cluster, auth := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster == nil || auth == nil {
		return nil, fmt.Errorf("the kubeconfig for %s names no cluster or user", file)
	}
	if auth.TokenFile == ownToken {
		return &targetLogin{cluster.Server, own}, nil
	}
	who, err := userOf(auth, files)
	return &targetLogin{cluster.Server, who}, err
}

// flagOf returns the value of a container's flag; "" if it is not set.
func flagOf(container *corev1.Container, name string) string {
	value := ""
	for _, argument := range append(append([]string{}, container.Command...), container.Args...) {
		if rest, ok := strings.CutPrefix(argument, name+"="); ok {
			value = rest
		}
	}
	return value
}

// mountedFiles returns the files of the Secrets that are mounted at a folder.
func (d *Doctor) mountedFiles(ctx context.Context, sidecar *workload, folder string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, mount := range sidecar.container.VolumeMounts {
		if path.Clean(mount.MountPath) != folder {
			continue
		}
		for _, volume := range sidecar.deployment.Spec.Template.Spec.Volumes {
			if volume.Name != mount.Name {
				continue
			}
			for name, items := range secretsOf(volume) {
				secret := &corev1.Secret{}
				if err := d.Control.Get(ctx, client.ObjectKey{Namespace: sidecar.deployment.Namespace, Name: name}, secret); err != nil {
					return nil, fmt.Errorf("reading Secret %s of the sidecar's Deployment: %w", name, err)
				}
				addFiles(files, secret.Data, items)
			}
		}
	}
	return files, nil
}

// secretsOf returns the Secrets of a volume, with the keys that are mounted; none means all.
func secretsOf(volume corev1.Volume) map[string][]corev1.KeyToPath {
	secrets := map[string][]corev1.KeyToPath{}
	if volume.Secret != nil {
		secrets[volume.Secret.SecretName] = volume.Secret.Items
	}
	if volume.Projected != nil {
		for _, source := range volume.Projected.Sources {
			if source.Secret != nil {
				secrets[source.Secret.Name] = source.Secret.Items
			}
		}
	}
	return secrets
}

func addFiles(files, entries map[string][]byte, items []corev1.KeyToPath) {
	for key, content := range entries {
		if len(items) == 0 {
			files[key] = content
		}
	}
	for _, item := range items {
		files[item.Path] = entries[item.Key]
	}
}

// userOf reads whom a kubeconfig logs in as out of its token or certificate, which it does
// not check.
func userOf(auth *clientcmdapi.AuthInfo, files map[string][]byte) (*user, error) {
	token := auth.Token
	if auth.TokenFile != "" {
		token = string(files[path.Base(auth.TokenFile)])
	}
	if token != "" {
		claims := &jwt.RegisteredClaims{}
		_, _, err := jwt.NewParser().ParseUnverified(strings.TrimSpace(token), claims)
		parts := strings.Split(claims.Subject, ":")
		if err != nil || len(parts) != 4 || parts[1] != "serviceaccount" {
			return nil, errors.New("the token in the sidecar's kubeconfig does not say whose it is")
		}
		return serviceAccountUser(parts[2], parts[3]), nil
	}
	if block, _ := pem.Decode(auth.ClientCertificateData); block != nil {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			return &user{certificate.Subject.CommonName, append(certificate.Subject.Organization, "system:authenticated")}, nil
		}
	}
	return nil, errors.New("the sidecar's kubeconfig does not say whom it logs in as")
}
