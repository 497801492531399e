// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// maxIdentity is the largest token of a workload identity, in bytes. One of kube-apiserver's
// has about 1,000.
const maxIdentity = 16 << 10

// FlagIdentityDirs is the sidecar's flag for Config.IdentityDirs: errors name it.
const FlagIdentityDirs = "stackit-workload-identity-dirs"

// DefaultIdentityDirs are where Gardener, and STACKIT's own tools, mount the tokens of
// workload identities.
const DefaultIdentityDirs = "/var/run/secrets/gardener.cloud/workload-identity,/var/run/secrets/stackit.cloud/serviceaccount"

// defaultPodTokenFile is where Kubernetes mounts the token that a pod logs in to the API
// server with.
const defaultPodTokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// ErrNoIdentityFile says that the file of a workload identity's token is not there, or not yet.
var ErrNoIdentityFile = errors.New("is not there")

// CheckIdentityDirs returns an error unless the folders can be Config.IdentityDirs.
func CheckIdentityDirs(dirs string) error {
	for dir := range strings.SplitSeq(dirs, ",") {
		if !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" {
			return fmt.Errorf("%q is no folder for tokens, must be an absolute path without . and .., as in %s", dir, DefaultIdentityDirs)
		}
	}
	return nil
}

// identityFile is a file that a Secret names, in a folder that the operator allows.
type identityFile struct{ dir, name string }

// identityFile returns the file of a path. The Secret is the tenant's, and this pod has files
// that are not.
func (c Config) identityFile(file string) (identityFile, error) {
	dirs := cmp.Or(c.IdentityDirs, DefaultIdentityDirs)
	if path.Clean(file) == file { // else it has a ".." or the like
		for dir := range strings.SplitSeq(dirs, ",") {
			if name, ok := strings.CutPrefix(file, dir+"/"); ok {
				return identityFile{dir, name}, nil
			}
		}
	}
	return identityFile{}, identityError("workloadIdentityTokenFile must be the absolute path, without . and .., of a file in %s; set the sidecar's flag --%s if it is right",
		strings.ReplaceAll(dirs, ",", " or "), FlagIdentityDirs)
}

// read returns the file's content. Links, such as those of a projected volume, are followed
// within the folder, which may itself be reached through one (/var/run is a link to /run).
func (f identityFile) read() (string, error) {
	token, err := f.readInRoot()
	switch {
	case err == nil:
		return token, nil
	case errors.Is(err, fs.ErrNotExist): // it is being renewed, or not mounted yet
		return "", fmt.Errorf("workloadIdentityTokenFile %q %w", path.Join(f.dir, f.name), ErrNoIdentityFile)
	default:
		return "", identityError("workloadIdentityTokenFile cannot be read: %v", err)
	}
}

func (f identityFile) readInRoot() (string, error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	return readRegular(root.Stat, root.Open, f.name, maxIdentity)
}

// readFile returns the content of a regular file of at most limit bytes.
func readFile(name string, limit int64) (string, error) {
	return readRegular(os.Stat, os.Open, name, limit)
}

// readRegular trims the line break that ends a file. A pipe would never end.
func readRegular(stat func(string) (fs.FileInfo, error), open func(string) (*os.File, error), name string, limit int64) (string, error) {
	info, err := stat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is no regular file")
	}
	file, err := open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return "", err
	}
	if int64(len(content)) > limit {
		return "", fmt.Errorf("it has more than %d bytes", limit)
	}
	return strings.TrimSpace(string(content)), nil
}
