// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// folderPattern is the pattern of the folders' names.
	folderPattern = "localenv-*"
	// ownerFile is a file in such a folder that its owner keeps locked. A lock is more reliable than a process ID: the
	// kernel releases it however the owner dies, and it works across containers that share the folder.
	ownerFile = ".owner"
)

// folder is a temporary folder. If its owner dies, removeAbandonedFolders removes it.
type folder struct {
	path  string
	owner *os.File
}

func makeFolder() (*folder, error) {
	path, err := os.MkdirTemp("", folderPattern)
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder in %s (TMPDIR names another place): %w", os.TempDir(), err)
	}
	owner, err := lockOwnerFile(path)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &folder{path: path, owner: owner}, nil
}

// lockOwnerFile creates the owner file. It locks the file before it gives it its name, so that the file never appears
// unlocked while its owner lives.
func lockOwnerFile(dir string) (*os.File, error) {
	path := filepath.Join(dir, ownerFile)
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// remove removes the folder and its content.
func (f *folder) remove() error {
	return errors.Join(os.RemoveAll(f.path), f.owner.Close())
}

// removeAbandonedFolders removes the folders of processes that were killed. It skips folders that it cannot remove,
// such as another user's.
func removeAbandonedFolders() {
	paths, err := filepath.Glob(filepath.Join(os.TempDir(), folderPattern))
	if err != nil {
		return // The pattern is a constant.
	}
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			removeIfAbandoned(path)
		}
	}
}

// removeIfAbandoned removes a folder whose owner file exists and is not locked. A folder without an owner file is just
// being made, or belongs to another program.
func removeIfAbandoned(path string) {
	// The folder may belong to any user: follow no link, and do not block on a pipe.
	const flags = os.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	owner, err := os.OpenFile(filepath.Join(path, ownerFile), flags, 0)
	if err != nil {
		return
	}
	defer func() { _ = owner.Close() }()
	if syscall.Flock(int(owner.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		_ = os.RemoveAll(path)
	}
}
