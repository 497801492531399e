// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// assets are the programs of the control plane.
type assets struct {
	etcd, apiServer string
}

func assetsIn(dir string) assets {
	return assets{etcd: filepath.Join(dir, "etcd"), apiServer: filepath.Join(dir, "kube-apiserver")}
}

// check tells whether both programs are there.
func (a assets) check() error {
	for _, path := range []string{a.etcd, a.apiServer} {
		if _, err := os.Stat(path); err != nil {
			return err
		}
	}
	return nil
}

const (
	// assetsVariable names a folder with etcd and kube-apiserver, as for
	// controller-runtime's envtest.
	assetsVariable = "KUBEBUILDER_ASSETS"
	// buildVariable, set to fromSource, keeps the control plane from being
	// downloaded.
	buildVariable = "LOCALENV_BUILD"
	fromSource    = "source"
)

// controlPlane returns etcd and kube-apiserver: those in KUBEBUILDER_ASSETS, or
// those in bin/, where they are downloaded or built if need be.
func (b builder) controlPlane(ctx context.Context) (assets, error) {
	var found assets
	var err error
	switch dir, build := os.Getenv(assetsVariable), os.Getenv(buildVariable); {
	case dir != "":
		found = assetsIn(dir)
		if err = found.check(); err != nil {
			err = fmt.Errorf("%s=%s: %w", assetsVariable, dir, err)
		}
	case build == fromSource:
		found, err = b.ownControlPlane(ctx, nil)
	case build == "":
		a := pinnedArchive()
		found, err = b.ownControlPlane(ctx, &a)
	default:
		err = fmt.Errorf("%s=%s: only %q is known", buildVariable, build, fromSource)
	}
	if err != nil {
		return assets{}, &PartError{Part: PartBuild, Err: err}
	}
	return found, nil
}

// ownControlPlane returns what bin/ holds. If there is nothing, it downloads the
// archive, and builds if there is none to download or that fails. What is there is
// taken without asking the network: a second start works offline, and nobody who has
// built it waits for a download.
func (b builder) ownControlPlane(ctx context.Context, a *archive) (assets, error) {
	built, err := b.builtFolder()
	if err != nil {
		return assets{}, err
	}
	folders := []string{built}
	if a != nil {
		folders = append(folders, b.bin("controlplane", a.folder()))
	}
	if found, ok := firstComplete(folders); ok {
		return found, nil
	}
	err = withFileLock(ctx, b.bin("controlplane", "build.lock"), b.waitingFor("the control plane"), func() error {
		if _, ok := firstComplete(folders); ok {
			return nil // Somebody else has made it while we waited.
		}
		if a != nil {
			err := b.install(b.bin("controlplane", a.folder()), func(next string) error { return b.download(ctx, *a, next) })
			if err == nil || ctx.Err() != nil {
				return err
			}
			b.progress("not downloaded: %s", strings.Join(strings.Fields(err.Error()), " "))
		}
		return b.install(built, func(next string) error { return b.buildControlPlane(ctx, next) })
	})
	if err != nil {
		return assets{}, fmt.Errorf("making the control plane: %w", err)
	}
	found, _ := firstComplete(folders)
	return found, nil
}

// firstComplete returns the first of the folders that holds a control plane.
func firstComplete(folders []string) (assets, bool) {
	for _, folder := range folders {
		if found := assetsIn(folder); found.check() == nil {
			return found, true
		}
	}
	return assets{}, false
}

// install has fill make a control plane in a new folder, and gives it the name final when it
// is complete.
func (b builder) install(final string, fill func(next string) error) error {
	all := b.bin("controlplane", "next")
	// What a process left that was killed. A child of it may still write there,
	// hence another folder each time.
	if err := os.RemoveAll(all); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(all) }()
	if err := os.MkdirAll(all, 0o750); err != nil {
		return err
	}
	next, err := os.MkdirTemp(all, "")
	if err != nil {
		return err
	}
	if err := fill(next); err != nil {
		return err
	}
	if err := assetsIn(next).check(); err != nil {
		return err
	}
	if err := os.RemoveAll(final); err != nil {
		return err
	}
	return os.Rename(next, final)
}

// buildControlPlane builds etcd and kube-apiserver into the folder to.
func (b builder) buildControlPlane(ctx context.Context, to string) error {
	source := b.controlPlaneModule()
	version, err := b.goCommand(ctx, source, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return err
	}
	target := assetsIn(to)
	b.progress("building etcd from source, once")
	if err := b.goBuild(ctx, source, "-ldflags", stripped, "-o", target.etcd, "go.etcd.io/etcd/server/v3"); err != nil {
		return err
	}
	b.progress("building kube-apiserver %s from source, once, about 3 minutes on 2 cores", version)
	defer b.keepReporting(30*time.Second, func() string { return "still building kube-apiserver" })()
	// Without a version that is semver the machine controller refuses the
	// cluster ("invalid semantic version").
	flags := stripped + " -X k8s.io/component-base/version.gitVersion=" + version
	return b.goBuild(ctx, source, "-ldflags", flags, "-o", target.apiServer, "k8s.io/kubernetes/cmd/kube-apiserver")
}

// controlPlaneModule is the folder of the module that pins what is built.
func (b builder) controlPlaneModule() string {
	return filepath.Join(b.root, "hack", "tools", "controlplane")
}

// builtFolder is where what is built belongs. It changes whenever the control plane
// must be built anew.
func (b builder) builtFolder() (string, error) {
	sum := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(b.controlPlaneModule(), name))
		if err != nil {
			return "", err
		}
		_, _ = sum.Write(content)
	}
	key := fmt.Sprintf("%s-%s-%s", runtime.GOOS, runtime.GOARCH, hex.EncodeToString(sum.Sum(nil))[:12])
	return b.bin("controlplane", key), nil
}
