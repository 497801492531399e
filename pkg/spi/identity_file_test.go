// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"strings"
	"testing"
	"testing/synctest"
)

// Whoever writes a Secret names the file: no file of the pod outside of the operator's
// folders may be sent anywhere.
func TestIdentityFiles(t *testing.T) {
	for name, row := range map[string]struct {
		// file is the path that the Secret has, below a folder where make has worked.
		file string
		make func(t *testing.T, root, token string)
		// dir is the folder of the flag; "" means "/dir".
		dir string
		// says is what the refusal says; "" if the token is sent.
		says string
	}{
		"a file":            {file: "/dir/token", make: func(t *testing.T, root, token string) { writeFile(t, root+"/dir/token", token) }},
		"in a folder of it": {file: "/dir/a/token", make: func(t *testing.T, root, token string) { writeFile(t, root+"/dir/a/token", token) }},
		"a projected volume": {file: "/dir/token", make: func(t *testing.T, root, token string) {
			writeFile(t, root+"/dir/..2026_01_02_03_04_05.678/token", token)
			link(t, "..2026_01_02_03_04_05.678", root+"/dir/..data")
			link(t, "..data/token", root+"/dir/token")
		}},
		"below a folder that is a link": {file: "/var/run/secrets/token", dir: "/var/run/secrets", make: func(t *testing.T, root, token string) {
			writeFile(t, root+"/run/secrets/token", token)
			link(t, "../run", root+"/var/run")
		}},
		"..": {file: "/dir/../elsewhere/token", says: "without . and ..", make: func(t *testing.T, root, token string) {
			writeFile(t, root+"/elsewhere/token", token)
			makeFolder(t, root+"/dir")
		}},
		".. that stays within": {file: "/dir/a/../token", says: "without . and ..", make: func(t *testing.T, root, token string) {
			writeFile(t, root+"/dir/token", token)
			makeFolder(t, root+"/dir/a")
		}},
		"a link that leads out": {file: "/dir/token", says: "escapes", make: func(t *testing.T, root, token string) {
			writeFile(t, root+"/elsewhere/token", token)
			link(t, "../elsewhere/token", root+"/dir/token")
		}},
		"a link with a whole path": {file: "/dir/token", says: "escapes", make: func(t *testing.T, root, token string) {
			writeFile(t, root+"/elsewhere/token", token)
			link(t, root+"/elsewhere/token", root+"/dir/token")
		}},
		"outside":     {file: "/elsewhere/token", says: "--" + FlagIdentityDirs, make: func(t *testing.T, root, token string) { writeFile(t, root+"/elsewhere/token", token) }},
		"a lookalike": {file: "/dirs/token", says: "--" + FlagIdentityDirs, make: func(t *testing.T, root, token string) { writeFile(t, root+"/dirs/token", token) }},
		"the folder":  {file: "/dir", says: "--" + FlagIdentityDirs, make: func(t *testing.T, root, _ string) { makeFolder(t, root+"/dir") }},
		"a folder":    {file: "/dir/a", says: "no regular file", make: func(t *testing.T, root, _ string) { makeFolder(t, root+"/dir/a") }},
		"a pipe":      {file: "/dir/a", says: "no regular file", make: func(t *testing.T, root, _ string) { makePipe(t, root+"/dir/a") }},
		"a link to a pipe": {file: "/dir/token", says: "no regular file", make: func(t *testing.T, root, _ string) {
			makePipe(t, root+"/dir/a")
			link(t, "a", root+"/dir/token")
		}},
		"far too large": {file: "/dir/token", says: "more than 16384 bytes", make: func(t *testing.T, root, token string) {
			writeFile(t, root+"/dir/token", token+strings.Repeat(" ", maxIdentity))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			i, root := newIdentity(newRig(t)), t.TempDir()
			if row.dir == "" {
				row.dir = "/dir"
			}
			i.sessions.Config.IdentityDirs = "/not/there," + root + row.dir
			row.make(t, root, i.token(nil))
			err := i.list(Credentials{TokenFile: root + row.file})
			if row.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			i.wantNotSent(err)
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v, want that it says %q", err, row.says)
			}
		})
	}
}

// A file that is not there may be renewed right now: the manager comes back in seconds.
func TestAnIdentityFileThatIsNotThereIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, dir := newIdentity(newVirtualRig(t)), t.TempDir()
		i.sessions.Config.IdentityDirs = dir
		err := i.list(Credentials{TokenFile: dir + "/token"})
		if err == nil || IsRefused(err) || !strings.Contains(err.Error(), "is not there") {
			t.Errorf("got %v, want a failure that is no refusal", err)
		}
	})
}

func TestCheckIdentityDirs(t *testing.T) {
	for dirs, ok := range map[string]bool{
		DefaultIdentityDirs: true, "/a": true, "/a/b,/c": true,
		"": false, "/": false, "a": false, "/a/": false, "/a/../b": false, "/a,": false, "/a, /b": false,
	} {
		if err := CheckIdentityDirs(dirs); (err == nil) != ok {
			t.Errorf("%q: %v, want ok=%t", dirs, err, ok)
		}
	}
}
