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

// assetsVariable names a folder with etcd and kube-apiserver, as in controller-runtime's envtest.
const assetsVariable = "KUBEBUILDER_ASSETS"

// programs holds the paths of the programs and of the folder with the manager's CRDs.
type programs struct {
	etcd, apiServer, manager, sidecar, crds string
}

// findPrograms returns the paths of the programs that make built. hack/scale uses a sidecar other than this project's.
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

// Check returns a *PartError if a program that Start needs is missing. It is for callers that do
// other work before Start.
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

// Root returns the root folder of this repository. It searches upwards from the working directory,
// which in tests is the folder of the package.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		// The path of a nested module continues after this module's path.
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.Contains(content, []byte("module "+modulePath+"\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("the working directory %s is not inside the module %s", start, modulePath)
		}
	}
}
