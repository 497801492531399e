// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// folderPattern is how the folders are called.
	folderPattern = "localenv-*"
	// ownerFile is a file in such a folder that its owner keeps locked. A lock
	// tells more than a process ID: the kernel releases it when the owner dies,
	// however it dies, and it holds across containers that share the folder.
	ownerFile = ".owner"
)

// folder is a temporary folder. If its owner dies, removeAbandonedFolders removes
// it.
type folder struct {
	path  string
	owner *os.File
}

func makeFolder() (*folder, error) {
	path, err := os.MkdirTemp("", folderPattern)
	if err != nil {
		return nil, err
	}
	owner, err := lockOwnerFile(path)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &folder{path: path, owner: owner}, nil
}

// lockOwnerFile makes the owner file. It gets its name once it is locked, so that
// nobody ever sees it free while its owner lives.
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

// remove removes the folder and all that is in it.
func (f *folder) remove() error {
	return errors.Join(os.RemoveAll(f.path), f.owner.Close())
}

// removeAbandonedFolders removes the folders of processes that were killed. What
// cannot be removed, such as another user's, stays.
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

// removeIfAbandoned removes a folder whose owner file is there and not locked. A
// folder without one is just being made, or not ours.
func removeIfAbandoned(path string) {
	// The folder may be anybody's: follow no link, and wait for nobody who writes
	// to a pipe.
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
