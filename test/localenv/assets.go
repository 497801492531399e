// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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

// assetsVariable names a folder with etcd and kube-apiserver, as for
// controller-runtime's envtest: setup-envtest's downloads can be used.
const assetsVariable = "KUBEBUILDER_ASSETS"

// controlPlane returns etcd and kube-apiserver: those in KUBEBUILDER_ASSETS, or
// those of the pinned module, which are built when they are not there yet.
func (b builder) controlPlane(ctx context.Context) (assets, error) {
	if dir := os.Getenv(assetsVariable); dir != "" {
		found := assetsIn(dir)
		if err := found.check(); err != nil {
			return assets{}, &PartError{Part: PartBuild, Err: fmt.Errorf("%s=%s: %w", assetsVariable, dir, err)}
		}
		return found, nil
	}
	built, err := b.builtControlPlane(ctx)
	if err != nil {
		return assets{}, &PartError{Part: PartBuild, Err: fmt.Errorf("building the control plane: %w", err)}
	}
	return built, nil
}

func (b builder) builtControlPlane(ctx context.Context) (assets, error) {
	source := filepath.Join(b.root, "hack", "tools", "controlplane")
	key, err := controlPlaneKey(source)
	if err != nil {
		return assets{}, err
	}
	final := b.bin("controlplane", key)
	if assetsIn(final).check() == nil {
		return assetsIn(final), nil
	}
	return assetsIn(final), withFileLock(ctx, b.bin("controlplane", "build.lock"), b.waitingFor("the control plane"), func() error {
		if assetsIn(final).check() == nil {
			return nil // Somebody else has built it while we waited.
		}
		next := final + ".next"
		defer func() { _ = os.RemoveAll(next) }()
		if err := b.buildControlPlane(ctx, source, next); err != nil {
			return err
		}
		if err := os.RemoveAll(final); err != nil {
			return err
		}
		return os.Rename(next, final)
	})
}

// buildControlPlane builds etcd and kube-apiserver into the folder to.
func (b builder) buildControlPlane(ctx context.Context, source, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
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
	defer b.keepReporting("still building kube-apiserver")()
	// Without a version that is semver the machine controller refuses the
	// cluster ("invalid semantic version").
	flags := stripped + " -X k8s.io/component-base/version.gitVersion=" + version
	return b.goBuild(ctx, source, "-ldflags", flags, "-o", target.apiServer, "k8s.io/kubernetes/cmd/kube-apiserver")
}

// keepReporting says what is going on twice a minute, until the returned
// function is called.
func (b builder) keepReporting(what string) (stop func()) {
	done := make(chan struct{})
	reported := make(chan struct{})
	start := time.Now()
	go func() {
		defer close(reported)
		ticker := time.NewTicker(30 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				b.progress("%s (%s)", what, time.Since(start).Round(time.Second))
			}
		}
	}()
	return func() { close(done); <-reported }
}

// controlPlaneKey changes whenever the control plane must be built anew.
func controlPlaneKey(source string) (string, error) {
	sum := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		_, _ = sum.Write(content)
	}
	return fmt.Sprintf("%s-%s-%s", runtime.GOOS, runtime.GOARCH, hex.EncodeToString(sum.Sum(nil))[:12]), nil
}
