// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Names of the two controllers: of their containers under kubernetes/, their images and
// their leases.
const (
	managerName      = "machine-controller-manager"
	sidecarName      = "machine-controller"
	sidecarImage     = "machine-controller-manager-provider-stackit"
	otherSidecars    = "machine-controller-manager-provider-"
	leaderElectOff   = "--leader-elect=false"
	noReadyPodRemedy = "look at the Pods: kubectl describe deployment, kubectl logs"
)

// workload is a container of a Deployment.
type workload struct {
	deployment *appsv1.Deployment
	container  *corev1.Container
}

func findContainer(deployments []appsv1.Deployment, is func(*corev1.Container) bool) *workload {
	for i := range deployments {
		containers := deployments[i].Spec.Template.Spec.Containers
		if index := slices.IndexFunc(containers, func(container corev1.Container) bool { return is(&container) }); index >= 0 {
			return &workload{&deployments[i], &containers[index]}
		}
	}
	return nil
}

// imageName is the last part of an image's name, and its tag; "" without one.
func imageName(image string) (name, tag string) {
	name, tag, _ = strings.Cut(path.Base(strings.SplitN(image, "@", 2)[0]), ":")
	return name, tag
}

func isManager(container *corev1.Container) bool {
	name, _ := imageName(container.Image)
	return container.Name == managerName || name == managerName
}

// isSidecar knows the image by the name that the Dockerfile's page and Gardener give it, and
// one of another name by the container's name or command.
func isSidecar(container *corev1.Container) bool {
	name, _ := imageName(container.Image)
	if name == sidecarImage || container.Name == sidecarImage {
		return true
	}
	if strings.HasPrefix(name, otherSidecars) {
		return false
	}
	return container.Name == sidecarName || len(container.Command) > 0 && path.Base(container.Command[0]) == sidecarName
}

func (d *Doctor) examineWorkload(subject string, found *workload) (deployed bool) {
	if found == nil {
		d.wrong(subject, fmt.Sprintf("no Deployment of namespace %s has a container of it", d.Namespace),
			"apply kubernetes/control, or name the namespace of the Machines with -n")
		return false
	}
	wanted, ready := ptr.Deref(found.deployment.Spec.Replicas, 1), found.deployment.Status.ReadyReplicas
	text := fmt.Sprintf("container %s of Deployment %s/%s, image %s, %d of %d ready",
		found.container.Name, found.deployment.Namespace, found.deployment.Name, found.container.Image, ready, wanted)
	switch {
	case wanted == 0:
		d.wrong(subject, text+": scaled to nothing", fmt.Sprintf("kubectl scale deployment %s --replicas=1, unless the cluster sleeps", found.deployment.Name))
	case ready == 0:
		d.wrong(subject, text, noReadyPodRemedy)
	case wanted > 1 && slices.Contains(found.container.Args, leaderElectOff):
		d.wrong(subject, text+" with "+leaderElectOff+": they work against each other", "remove the flag, or scale to one replica")
	case ready < wanted:
		d.hint(subject, text, noReadyPodRemedy)
	default:
		d.fine(subject, text)
	}
	return true
}

// examineManagerVersion compares the image's tag with the version of the sidecar's library.
func (d *Doctor) examineManagerVersion(image string) {
	const subject = "manager's version"
	switch _, tag := imageName(image); tag {
	case managerVersion:
		d.fine(subject, tag+", as the sidecar's library")
	case "":
		d.unknown(subject, "the image has no tag that would tell it", "use the image of "+managerVersion)
	default:
		d.wrong(subject, fmt.Sprintf("%s, but the sidecar's library is %s", tag, managerVersion), "use versions that go together (kubernetes/upgrade.md)")
	}
}

// examineEnvironment reads the sidecar's environment variables as it does at its start. Those
// that the Deployment does not say itself make the rest worth nothing.
func (d *Doctor) examineEnvironment(container *corev1.Container) {
	const subject = "sidecar's environment"
	var elsewhere []string
	config, err := spi.ConfigFromEnvironment(func(name string) (string, bool) {
		for _, variable := range slices.Backward(container.Env) {
			if variable.Name != name {
				continue
			}
			if variable.ValueFrom != nil || strings.Contains(variable.Value, "$(") {
				elsewhere = append(elsewhere, name)
			}
			return variable.Value, true
		}
		if len(container.EnvFrom) > 0 {
			elsewhere = append(elsewhere, name)
		}
		return "", false
	})
	switch {
	case len(elsewhere) > 0:
		slices.Sort(elsewhere)
		d.unknown(subject, "the Deployment takes "+strings.Join(slices.Compact(elsewhere), ", ")+" from elsewhere (valueFrom, envFrom or $(...)), or may",
			"see that this command has the same values, or what it says of the cloud is not what the sidecar sees")
	case err != nil:
		d.wrong(subject, "the sidecar ends at its start: "+report.OneLine(err.Error()), "correct env in the Deployment")
	case d.ConfigError != nil:
		d.hint(subject, fmt.Sprintf("there %s; here it is wrong", describeConfig(config)), "")
	case config != d.Config:
		d.hint(subject, fmt.Sprintf("differs from this command's: there %s, here %s", describeConfig(config), describeConfig(d.Config)),
			"set the same variables for this command, or what it says of the cloud is not what the sidecar sees")
	default:
		d.fine(subject, describeConfig(config)+", as here")
	}
}

func describeConfig(config spi.Config) string {
	parts := []string{"the default endpoint"}
	if config.Endpoint != "" {
		parts = []string{"endpoint " + config.Endpoint}
	}
	if config.TokenURL != "" {
		parts = append(parts, "token endpoint "+config.TokenURL)
	}
	if config.NoAuth {
		parts = append(parts, "no authentication")
	}
	return strings.Join(parts, ", ")
}

func (d *Doctor) examineLease(ctx context.Context, name string) {
	subject := "lease " + name
	lease := &coordinationv1.Lease{}
	err := d.Control.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: name}, lease)
	if apierrors.IsNotFound(err) {
		d.wrong(subject, "is not there: nobody has ever led", "start it; with "+leaderElectOff+" there is none, and only one replica may run")
		return
	}
	if err != nil {
		d.unread(subject, err)
		return
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if holder == "" || lease.Spec.RenewTime == nil {
		d.wrong(subject, "nobody holds it", "see that a Pod of it runs")
		return
	}
	duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	age := d.Now().Sub(lease.Spec.RenewTime.Time).Round(time.Second)
	found := fmt.Sprintf("%s holds it, renewed %s ago, for %s", holder, max(age, 0), duration)
	if age > duration {
		d.wrong(subject, found+": nobody leads now", "see that a Pod of it runs, and that this computer's clock is right")
		return
	}
	d.fine(subject, found)
}
