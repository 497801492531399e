// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

const (
	// ownToken is the path of a Pod's own service-account token.
	ownToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	// noCluster is the --target-kubeconfig of a sidecar without a target cluster.
	noCluster     = "none"
	subjectTarget = "login to the target cluster"
)

// checkTarget checks the sidecar's login to the target cluster, and reads with it once. A Pod's own token must not be
// used outside the Pod.
func (d *Doctor) checkTarget(ctx context.Context) {
	if d.sidecar == nil {
		d.notTried("the sidecar's " + subjectTarget + ": no Deployment of the sidecar was found")
		return
	}
	file := d.sidecar.flag("target-kubeconfig")
	switch file {
	case noCluster:
		d.fine(subjectTarget, "the sidecar has no target cluster")
		return
	case "": // its own cluster (v0.62.1 app.go:88)
		d.notTried("the sidecar's " + subjectTarget + ", which is its own cluster: " + errOwnToken.Error())
		return
	}
	files, err := d.mountedFiles(ctx, path.Dir(file))
	if err != nil {
		d.unread(subjectTarget, err)
		return
	}
	login, err := loginOf(file, files)
	switch {
	case errors.Is(err, errOwnToken):
		d.notTried("the sidecar's " + subjectTarget + " " + login.Host + ": " + err.Error())
	case err != nil:
		d.wrong(subjectTarget, err.Error(), "correct what the sidecar's Deployment mounts at "+path.Dir(file))
	default:
		d.tryLogin(ctx, login)
	}
}

// mountedFiles returns the files of the Secrets and ConfigMaps that the sidecar has in a folder.
func (d *Doctor) mountedFiles(ctx context.Context, folder string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, mount := range d.sidecar.container.VolumeMounts {
		for _, volume := range d.sidecar.deployment.Spec.Template.Spec.Volumes {
			if path.Clean(mount.MountPath) != folder || volume.Name != mount.Name {
				continue
			}
			for _, source := range sourcesOf(&volume) {
				content, items, err := d.contentOf(ctx, source)
				if err != nil {
					return nil, err
				}
				if len(items) == 0 {
					maps.Copy(files, content)
				}
				for _, item := range items {
					files[item.Path] = content[item.Key]
				}
			}
		}
	}
	return files, nil
}

// sourcesOf returns the sources of a volume.
func sourcesOf(volume *corev1.Volume) []corev1.VolumeProjection {
	switch {
	case volume.Secret != nil:
		name := corev1.LocalObjectReference{Name: volume.Secret.SecretName}
		return []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: name, Items: volume.Secret.Items}}}
	case volume.ConfigMap != nil:
		return []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: volume.ConfigMap.LocalObjectReference, Items: volume.ConfigMap.Items}}}
	case volume.Projected != nil:
		return volume.Projected.Sources
	}
	return nil
}

// contentOf returns the data of a Secret or ConfigMap, and which of its keys are mounted: all keys without items.
func (d *Doctor) contentOf(
	ctx context.Context, source corev1.VolumeProjection,
) (map[string][]byte, []corev1.KeyToPath, error) {
	switch {
	case source.Secret != nil:
		secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: d.sidecar.deployment.Namespace, Name: source.Secret.Name}
		if err := d.Control.Get(ctx, key, secret); err != nil {
			return nil, nil, fmt.Errorf("reading Secret %s of the sidecar's Deployment: %w", key.Name, err)
		}
		return secret.Data, source.Secret.Items, nil
	case source.ConfigMap != nil:
		configMap, key := &corev1.ConfigMap{},
			client.ObjectKey{Namespace: d.sidecar.deployment.Namespace, Name: source.ConfigMap.Name}
		if err := d.Control.Get(ctx, key, configMap); err != nil {
			return nil, nil, fmt.Errorf("reading ConfigMap %s of the sidecar's Deployment: %w", key.Name, err)
		}
		content := map[string][]byte{}
		for name, text := range configMap.Data {
			content[name] = []byte(text)
		}
		return content, source.ConfigMap.Items, nil
	}
	return nil, nil, nil
}

var errOwnToken = errors.New("it uses the Pod's own token, which must not leave the Pod")

// loginOf returns the login of a kubeconfig. It uses only the mounted files: it runs no program and reads no local
// file. Its errors never contain the kubeconfig's content.
func loginOf(file string, files map[string][]byte) (*rest.Config, error) {
	config, err := clientcmd.Load(files[path.Base(file)])
	if err != nil || config.Contexts[config.CurrentContext] == nil {
		return nil, fmt.Errorf("no Secret or ConfigMap that the sidecar mounts has a kubeconfig with a current "+
			"context for --target-kubeconfig=%s", file)
	}
	current := config.Contexts[config.CurrentContext]
	cluster, auth := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster == nil || auth == nil {
		return nil, fmt.Errorf("the current context of the kubeconfig for --target-kubeconfig=%s "+
			"refers to a cluster or user that the file does not have", file)
	}
	// mounted returns the mounted file that the kubeconfig names; nil if it is not among them.
	mounted := func(name string) []byte {
		if path.Dir(name) != path.Dir(file) {
			return nil
		}
		return files[path.Base(name)]
	}
	either := func(data []byte, name string) []byte {
		if len(data) > 0 || name == "" {
			return data
		}
		return mounted(name)
	}
	login := &rest.Config{
		Host: cluster.Server, BearerToken: cmp.Or(strings.TrimSpace(string(mounted(auth.TokenFile))), auth.Token),
		TLSClientConfig: rest.TLSClientConfig{
			Insecure: cluster.InsecureSkipTLSVerify, ServerName: cluster.TLSServerName,
			CAData:   either(cluster.CertificateAuthorityData, cluster.CertificateAuthority),
			CertData: either(auth.ClientCertificateData, auth.ClientCertificate),
			KeyData:  either(auth.ClientKeyData, auth.ClientKey),
		},
	}
	switch {
	case auth.TokenFile == ownToken:
		return login, errOwnToken
	case login.BearerToken == "" && len(login.CertData) == 0:
		return login, fmt.Errorf("the kubeconfig for --target-kubeconfig=%s has no token or certificate, "+
			"inline or in a file that the sidecar mounts", file)
	}
	return login, nil
}

// loginExpiresSoon is how long before its expiry a login should be renewed. Logins with a shorter lifetime, such as
// Gardener's of 12 hours, are renewed automatically.
const loginExpiresSoon = 7 * 24 * time.Hour

// validity returns when a login starts and stops being valid; zero times if unknown.
func validity(login *rest.Config) (begin, end time.Time) {
	claims := &jwt.RegisteredClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(login.BearerToken, claims); err == nil && claims.ExpiresAt != nil {
		if claims.IssuedAt != nil {
			begin = claims.IssuedAt.Time
		}
		return begin, claims.ExpiresAt.Time
	}
	if block, _ := pem.Decode(login.CertData); block != nil && login.BearerToken == "" {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			return certificate.NotBefore, certificate.NotAfter
		}
	}
	return time.Time{}, time.Time{}
}

// tryLogin reads one Node. A host name known only inside the cluster, as in Gardener, cannot be reached from here.
func (d *Doctor) tryLogin(ctx context.Context, login *rest.Config) {
	const renew = "renew the login in the sidecar's Secret (kubernetes/README.md, \"The token\")"
	verdict, remedy, found := report.Fine, "", login.Host+", expiry unknown"
	if begin, end := validity(login); !end.IsZero() {
		left, until := end.Sub(d.Clock.Now()), end.UTC().Format(time.DateTime)
		found = fmt.Sprintf("%s, valid until %s UTC", login.Host, until)
		switch {
		case left <= 0:
			d.wrong(subjectTarget, fmt.Sprintf("%s, expired at %s UTC", login.Host, until), renew)
			return
		case left < loginExpiresSoon && end.Sub(begin) > loginExpiresSoon:
			verdict, remedy, found = report.Hint, renew, fmt.Sprintf("%s, expires at %s UTC, within a week", login.Host, until)
		}
	}
	login.Timeout = d.ReadTimeout
	nodes, err := kubernetes.NewForConfig(login)
	if err == nil {
		_, err = nodes.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	}
	host, _ := url.Parse(login.Host)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		d.report(verdict, subjectTarget, found+": reads Nodes", remedy)
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		d.wrong(subjectTarget, found+": cannot read Nodes: "+err.Error(), renew+"; or apply kubernetes/target/rbac.yaml")
	case !errors.As(err, &status) && host != nil && isInside(host.Hostname()):
		d.report(verdict, subjectTarget, found, remedy)
		d.notTried("reading Nodes with the sidecar's login: only Pods can resolve " + host.Hostname())
	default:
		d.unknown(subjectTarget, found+": cannot read Nodes: "+err.Error(), "")
	}
}

// isInside reports whether a host is a cluster-internal Service name.
func isInside(host string) bool {
	return !strings.Contains(host, ".") && host != "localhost" || strings.HasSuffix(host, ".svc") ||
		strings.HasSuffix(host, ".svc.cluster.local")
}
