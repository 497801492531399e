// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// managerVersion is the version of machine-controller-manager that the sidecar is built with. kubernetes/upgrade.md
// lists which versions go together.
const managerVersion = "v0.62.1"

// Names of the two controllers: of their containers under kubernetes/, their images and
// their leases.
const (
	managerName   = "machine-controller-manager"
	sidecarName   = "machine-controller"
	sidecarImage  = "machine-controller-manager-provider-stackit"
	otherSidecars = "machine-controller-manager-provider-"

	leaderElectOff = "--leader-elect=false"
	lookAtPods     = "look at the Pods: kubectl describe deployment, kubectl logs"
)

// checkClasses checks the MachineClasses and their Secrets as the manager and the driver do.
func (d *Doctor) checkClasses(ctx context.Context) {
	subject := "MachineClasses of namespace " + d.Namespace
	classes, err := d.Classes(ctx, d.Namespace)
	if err != nil {
		d.unread(subject, err)
		return
	}
	if len(classes) == 0 {
		d.hint(subject, "there are none", "set the namespace of the Machines with -n")
	}
	clusters := map[string]string{}
	for _, class := range classes {
		if class.IsForeign() {
			d.hint(class.Subject(), fmt.Sprintf("belongs to provider %q, so to another sidecar; not checked", class.Provider),
				"if STACKIT is meant, set provider to "+provider.StackitProviderName)
			continue
		}
		maps.Copy(clusters, d.checkClass(ctx, class))
	}
	d.checkClusterLabels(ctx, clusters)
}

// checkClass reports one fine Finding, or everything that is wrong, and returns the cluster labels.
func (d *Doctor) checkClass(ctx context.Context, class *account.Class) map[string]string {
	subject, names := class.Subject(), account.SecretNames(class.MachineClass)
	if len(names) == 0 {
		d.wrong(subject, "names no Secret: machine-controller-manager does not call the driver", "set secretRef")
		return nil
	}
	secret, err := d.SecretOf(ctx, class.MachineClass)
	switch {
	case errors.Is(err, account.ErrNoSecret):
		d.wrong(subject, err.Error(), "create the Secret, or correct the reference to it")
		return nil
	case err != nil:
		d.unread(subject, err)
		return nil
	}
	before := len(d.result.Findings)
	// Without userData the manager never calls the driver for a creation (v0.62.1 userdata.go:42).
	if _, ok := secret.Data[apis.SecretUserData]; !ok {
		d.wrong(subject, fmt.Sprintf("the key %s is missing in %s: machine-controller-manager does not call the driver, "+
			"and new Machines stay without a status", apis.SecretUserData, strings.Join(names, " and ")),
			"add the key "+apis.SecretUserData+" with the cloud-init; it may be empty")
	}
	inputs := provider.Inspect(class.MachineClass, secret)
	if unusable := d.unusable[class.Name]; unusable != nil {
		d.reportCredentials(subject, unusable)
	} else if len(inputs.Errors) > 0 {
		d.wrong(subject, fmt.Sprintf("%s: %v", report.Count(len(inputs.Errors), "error"), inputs.Errors[0]),
			"the subcommand validate shows all of them")
	}
	if len(inputs.ClusterLabels) == 0 {
		d.hint(subject, "has no cluster label: servers are distinguished only by the names of Machine and class",
			"where clusters share a project, create a class whose providerSpec.labels have a key that ends in /cluster, "+
				"with a value unique to this cluster, and roll the machines to it; "+
				"never add such a label to a class that has machines")
	}
	if len(d.result.Findings) == before {
		d.fine(subject, fmt.Sprintf("provider, credentials and %s are present, in %s",
			apis.SecretUserData, strings.Join(names, " and ")))
	}
	return inputs.ClusterLabels
}

// checkClusterLabels looks for other namespaces that use one of the cluster labels: in one project, the two would adopt
// and delete each other's servers.
func (d *Doctor) checkClusterLabels(ctx context.Context, clusters map[string]string) {
	if len(clusters) == 0 {
		return
	}
	everywhere, err := d.Classes(ctx, metav1.NamespaceAll)
	if err != nil {
		d.notTried("whether MachineClasses of other namespaces have this cluster label: they cannot be read")
		return
	}
	for _, class := range everywhere {
		if class.Namespace == d.Namespace || class.IsForeign() {
			continue
		}
		for key, value := range class.Inputs.ClusterLabels {
			if clusters[key] == value {
				d.hint("cluster label "+key+"="+value,
					"also the label of "+class.Subject()+": in one project, the two clusters delete each other's servers",
					"unless their projects differ, create new classes with a unique value for each cluster, "+
						"and roll the machines to them")
			}
		}
	}
}

// workload is a container of a Deployment.
type workload struct {
	deployment *appsv1.Deployment
	container  *corev1.Container
}

// flag returns the value of a non-boolean flag, given as --name=value or in two arguments; "" if it is not set.
func (w *workload) flag(name string) string {
	value, arguments := "", slices.Concat(w.container.Command, w.container.Args)
	for i, argument := range arguments {
		if rest, ok := strings.CutPrefix(argument, "--"+name+"="); ok {
			value = rest
		} else if argument == "--"+name && i+1 < len(arguments) {
			value = arguments[i+1]
		}
	}
	return value
}

// elects reports whether its Pods elect a leader, which is the default (v0.62.1 leaderelectionconfig/config.go:45). A
// boolean flag never takes its value from the next argument.
func (w *workload) elects() bool {
	elects := true
	for _, argument := range slices.Concat(w.container.Command, w.container.Args) {
		if value, ok := strings.CutPrefix(argument, "--leader-elect="); ok {
			parsed, err := strconv.ParseBool(value)
			elects = parsed || err != nil
		} else if argument == "--leader-elect" {
			elects = true
		}
	}
	return elects
}

// checkDeployments checks the manager and the sidecar, their versions and their flags.
func (d *Doctor) checkDeployments(ctx context.Context) {
	var list appsv1.DeploymentList
	if err := d.Control.List(ctx, &list, client.InNamespace(d.Namespace)); err != nil {
		d.unread("manager and sidecar", err)
		return
	}
	d.manager, d.sidecar = findContainer(list.Items, isManager), findContainer(list.Items, isSidecar)
	d.otherSidecar = findContainer(list.Items, isOtherSidecar)
	if d.checkWorkload("manager", d.manager) {
		d.checkManagerVersion(d.manager)
	}
	d.checkWorkload("sidecar", d.sidecar)
}

func findContainer(deployments []appsv1.Deployment, is func(*corev1.Container) bool) *workload {
	for i := range deployments {
		containers := deployments[i].Spec.Template.Spec.Containers
		index := slices.IndexFunc(containers, func(container corev1.Container) bool { return is(&container) })
		if index >= 0 {
			return &workload{&deployments[i], &containers[index]}
		}
	}
	return nil
}

// imageName returns the last part of an image's name, and its tag; "" if it has no tag.
func imageName(image string) (name, tag string) {
	name, tag, _ = strings.Cut(path.Base(strings.SplitN(image, "@", 2)[0]), ":")
	return name, tag
}

func isManager(container *corev1.Container) bool {
	name, _ := imageName(container.Image)
	return container.Name == managerName || name == managerName
}

// isSidecar reports whether a container is the sidecar: by the image name that the Dockerfile's page and Gardener use,
// or else by the container's name or command.
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

// isOtherSidecar reports whether a container is another provider's sidecar.
func isOtherSidecar(container *corev1.Container) bool {
	name, _ := imageName(container.Image)
	return strings.HasPrefix(name, otherSidecars) && !isSidecar(container)
}

// asMigration is the remedy for states that are correct during a migration of Machines. Another provider's manager must
// never start on rewritten ProviderIDs.
const asMigration = "correct during a migration: start nothing before the step that starts it (kubernetes/migration.md)"

// beforeStart is the remedy instead of a command that starts the manager: without its Machines, it
// deletes their servers.
const beforeStart = "Before you start it, restore Machines that were lost: " +
	"list servers --orphans shows their servers (kubernetes/runbooks.md#stackitmanagerdown)"

// scaledDown says who scales the manager down on purpose: Gardener's dependency-watchdog does, lest the manager replace
// all Machines of a cluster that loses its Nodes' heartbeats.
const scaledDown = "This is correct if the cluster is hibernated and, in Gardener, while its Nodes do not reach it " +
	"(kubernetes/runbooks.md#stackitmanagerdown). "

// isMigrating reports whether Machines came from OpenStack, or another provider's sidecar is deployed.
func (d *Doctor) isMigrating() bool { return d.fromOpenStack || d.otherSidecar != nil }

func (d *Doctor) checkWorkload(subject string, found *workload) (deployed bool) {
	if found == nil {
		text := fmt.Sprintf("no Deployment of namespace %s has its container", d.Namespace)
		switch {
		case d.otherSidecar != nil:
			d.wrong(subject, fmt.Sprintf("%s, but Deployment %s has image %s", text,
				d.otherSidecar.deployment.Name, d.otherSidecar.container.Image), asMigration)
		case d.isMigrating():
			d.wrong(subject, text, asMigration)
		default:
			d.wrong(subject, text, "name the namespace of the Machines with -n, or deploy it "+
				"(kubernetes/README.md; in Gardener the extension does). "+beforeStart)
		}
		return false
	}
	wanted, ready := ptr.Deref(found.deployment.Spec.Replicas, 1), found.deployment.Status.ReadyReplicas
	text := fmt.Sprintf("container %s of Deployment %s/%s, image %s, %d of %d ready",
		found.container.Name, found.deployment.Namespace, found.deployment.Name, found.container.Image, ready, wanted)
	namespace := found.flag("namespace")
	switch {
	case namespace != d.Namespace && namespace != "" && !strings.Contains(namespace, "$("):
		d.wrong(subject, text+", --namespace="+namespace,
			"the flag must be the namespace of the Machines: correct it, or set another namespace with -n")
	case wanted == 0 && d.isMigrating():
		d.wrong(subject, text+": scaled to 0", asMigration)
	case wanted == 0:
		d.wrong(subject, text+": scaled to 0", scaledDown+beforeStart)
	case ready == 0:
		d.wrong(subject, text, lookAtPods)
	case wanted > 1 && !found.elects():
		d.wrong(subject, text+" with "+leaderElectOff+": the replicas work against each other",
			"remove the flag, or scale to one replica")
	case ready < wanted:
		d.hint(subject, text, lookAtPods)
	default:
		d.fine(subject, text)
	}
	return true
}

// checkManagerVersion compares the image's tag with the version of the sidecar's library.
func (d *Doctor) checkManagerVersion(manager *workload) {
	const subject = "manager's version"
	switch _, tag := imageName(manager.container.Image); tag {
	case managerVersion:
		d.fine(subject, tag+", the version of the sidecar's library")
	case "":
		d.unknown(subject, "the image has no tag that shows it", "use the image with the tag "+managerVersion)
	default:
		d.wrong(subject, fmt.Sprintf("%s, but the sidecar's library is %s", tag, managerVersion),
			"use compatible versions (kubernetes/upgrade.md)")
	}
}

// checkLeases checks which Pod of the manager and which of the sidecar leads.
func (d *Doctor) checkLeases(ctx context.Context) {
	d.checkLease(ctx, managerName, d.manager)
	d.checkLease(ctx, sidecarName, d.sidecar)
}

func (d *Doctor) checkLease(ctx context.Context, name string, of *workload) {
	subject, lease := "lease "+name, &coordinationv1.Lease{}
	if of != nil && !of.elects() { // an old lease may be left
		d.fine(subject, "not used: "+leaderElectOff)
		return
	}
	err := d.Control.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: name}, lease)
	if apierrors.IsNotFound(err) {
		d.wrong(subject, "does not exist: no Pod has ever led",
			"see the line about its Deployment; with "+leaderElectOff+" there is no lease, and only one replica may run")
		return
	}
	if err != nil {
		d.unread(subject, err)
		return
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if holder == "" || lease.Spec.RenewTime == nil {
		d.wrong(subject, "has no holder", "see the line about its Deployment")
		return
	}
	duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	age := d.Clock.Now().Sub(lease.Spec.RenewTime.Time).Round(time.Second)
	found := fmt.Sprintf("%s holds it, renewed %s ago, valid for %s", holder, max(age, 0), duration)
	if age > duration {
		d.wrong(subject, found+": no Pod leads now", "see the line about its Deployment, and check this computer's clock")
		return
	}
	d.fine(subject, found)
}
