// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

const modulePath = "github.com/stackitcloud/machine-controller-manager-provider-stackit"

// assetsVariable names a folder with etcd and kube-apiserver, as for controller-runtime's
// envtest.
const assetsVariable = "KUBEBUILDER_ASSETS"

// programs are the paths of what is run, and the folder of the manager's custom resource
// definitions.
type programs struct {
	etcd, apiServer, manager, sidecar, crds string
}

// findPrograms returns where make has put the programs. The sidecar is another one than this
// project's for hack/scale.
func findPrograms(sidecar string) (programs, error) {
	root, err := Root()
	if err != nil {
		return programs{}, &PartError{Part: partPrograms, Err: err}
	}
	built, controlPlane := filepath.Join(root, "bin", "localenv"), filepath.Join(root, "bin", "controlplane")
	remedy := "run 'make localenv'"
	if assets := os.Getenv(assetsVariable); assets != "" {
		controlPlane, remedy = assets, assetsVariable+" must name a folder with etcd and kube-apiserver"
	}
	p := programs{
		etcd:      filepath.Join(controlPlane, "etcd"),
		apiServer: filepath.Join(controlPlane, "kube-apiserver"),
		manager:   filepath.Join(built, "machine-controller-manager"),
		sidecar:   filepath.Join(built, sidecar),
		crds:      filepath.Join(built, "crds"),
	}
	if err := present(p.etcd, p.apiServer); err != nil {
		return programs{}, &PartError{Part: partPrograms, Err: fmt.Errorf("%w: %s", err, remedy)}
	}
	if err := present(p.manager, p.sidecar, p.crds); err != nil {
		return programs{}, &PartError{Part: partPrograms, Err: fmt.Errorf("%w: run 'make localenv'", err)}
	}
	return p, nil
}

// Check returns an error (*PartError) if a program that Start needs is not there: for those who must
// know before they do something else.
func Check() error {
	_, err := findPrograms(newSettings(nil).sidecarProgram)
	return err
}

func present(paths ...string) error {
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			return err
		}
	}
	return nil
}

// Root returns the root of this repository, looking upwards from the
// working directory (tests run in their package's folder).
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		// A nested module's path goes on after ours.
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.Contains(content, []byte("module "+modulePath+"\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside the module %s", start, modulePath)
		}
	}
}
