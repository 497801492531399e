// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// archive is the file for one platform.
type archive struct{ OS, Arch, Name, Program, SHA256 string }

// newArchive names the archive and its program for a platform such as linux/amd64. Windows
// opens a zip without a program of its own.
func newArchive(platform string) archive {
	made := archive{Program: "mcm-stackit"}
	made.OS, made.Arch, _ = strings.Cut(platform, "/")
	extension := ".tar.gz"
	if made.OS == "windows" {
		made.Program, extension = made.Program+".exe", ".zip"
	}
	made.Name = "mcm-stackit_" + made.OS + "_" + made.Arch + extension
	return made
}

// packer writes files into an archive that it ends with Close.
type packer interface {
	add(name string, mode os.FileMode, content []byte) error
	io.Closer
}

// pack writes files into the archive at path. They get the time instead of that of this
// computer, and no owner.
func (a archive) pack(path string, modified time.Time, files ...string) error {
	out, err := os.Create(filepath.Clean(path))
	if err != nil {
		return err
	}
	var into packer
	if filepath.Ext(a.Name) == ".zip" {
		into = zipped{zip.NewWriter(out), modified}
	} else {
		compressed := gzip.NewWriter(out)
		into = tarred{tar.NewWriter(compressed), compressed, modified}
	}
	for _, file := range files {
		content, problem := os.ReadFile(filepath.Clean(file))
		if problem == nil {
			mode := os.FileMode(0o644)
			if filepath.Base(file) == a.Program {
				mode = 0o755
			}
			problem = into.add(filepath.Base(file), mode, content)
		}
		err = errors.Join(err, problem)
	}
	return errors.Join(err, into.Close(), out.Close())
}

type tarred struct {
	*tar.Writer

	compressed io.Closer
	modified   time.Time
}

func (t tarred) add(name string, mode os.FileMode, content []byte) error {
	header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: int64(mode), Size: int64(len(content)), ModTime: t.modified}
	if err := t.WriteHeader(header); err != nil {
		return err
	}
	_, err := t.Write(content)
	return err
}

func (t tarred) Close() error { return errors.Join(t.Writer.Close(), t.compressed.Close()) }

type zipped struct {
	*zip.Writer

	modified time.Time
}

func (z zipped) add(name string, mode os.FileMode, content []byte) error {
	header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: z.modified}
	header.SetMode(mode)
	file, err := z.CreateHeader(header)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return err
}
