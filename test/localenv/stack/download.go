// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"sigs.k8s.io/yaml"
)

// envtestVersion is the version of the archive: the newest patch of the minor version
// in hack/tools/controlplane that controller-tools had published when it was pinned. A
// newer patch in the index has no checksum here, so that it is not used before somebody
// pins it.
const envtestVersion = "1.36.2"

// envtestSums are the SHA512 of the archives of envtestVersion by name, from controller-tools'
// envtest-releases.yaml. Each line names the version, so that .github/renovate.json finds it.
var envtestSums = map[string]string{
	"envtest-v1.36.2-linux-amd64.tar.gz":  "ea743186c8a799f5cf8faf16969f86189d003cb7d130e0ac4b58789f1e5748dcf30ebe91c837a10d5ac415383da3e10b9e64d65785c938c23e739781cfb76f08",
	"envtest-v1.36.2-linux-arm64.tar.gz":  "2d72ee985a8e262a3c57dc9f7f0fd891f6a8c7bf7ebaa2db6dc6d8eac8ae28181afe51c1f368b67756cdb40b10de9b205609e1726e5f27f7c6d824dd9c6649ac",
	"envtest-v1.36.2-darwin-amd64.tar.gz": "b4fe9f973cd1992e3880f8b230ed32c0c243b83371591e3e3315f4404df2cdbef8ee94eeb9bb245b7e5feb987d5c4a76c43e0877654ab73f00d7bbc2b9984514",
	"envtest-v1.36.2-darwin-arm64.tar.gz": "9278f9e5af556b2f1f2d139769c1f0d717c7b4426917fdebdba898bcb725a916e4910d6160886194ff9be9589ea7c5c32c2b8ae0754703874b7c8ba8ddfc41ce",
}

const (
	// envtestIndex is the index that setup-envtest has by default.
	envtestIndex = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"
	// indexVariable names another index, such as a mirror's.
	indexVariable = "LOCALENV_ENVTEST_INDEX"
	// sumVariable is the SHA512 to expect instead of the pinned one, for an archive
	// that a mirror has packed itself.
	sumVariable = "LOCALENV_ENVTEST_SHA512"
)

// archive is an archive with etcd and kube-apiserver, as setup-envtest finds it.
type archive struct {
	version, platform string
	// sum is its SHA512; empty if none is pinned for the platform.
	sum string
	// index is the URL of the index that tells where it is.
	index string
	// indexLimit is how long the index may take, limit the download and what follows.
	indexLimit, limit time.Duration
}

// pinnedArchive returns the archive for this computer.
func pinnedArchive() archive {
	a := archive{
		version:    envtestVersion,
		platform:   runtime.GOOS + "-" + runtime.GOARCH,
		index:      cmp.Or(os.Getenv(indexVariable), envtestIndex),
		indexLimit: 3 * time.Second,
		// What takes longer than this is not faster than the build.
		limit: 4 * time.Minute,
	}
	a.sum = cmp.Or(os.Getenv(sumVariable), envtestSums[a.name()])
	return a
}

// name is the file's name in the index.
func (a archive) name() string { return fmt.Sprintf("envtest-v%s-%s.tar.gz", a.version, a.platform) }

// folder is where the programs belong in bin/controlplane. Another checksum makes
// another folder.
func (a archive) folder() string {
	return fmt.Sprintf("envtest-%s-%s-%.12s", a.version, a.platform, a.sum)
}

// download has setup-envtest download the archive and extract it below the folder to,
// and returns where the programs are.
//
// setup-envtest checks the archive against the index that it reads. So we read the
// index, compare its checksum with the pinned one, and hand that very index to
// setup-envtest: what it checks is what is pinned.
func (b builder) download(ctx context.Context, a archive, to string) (string, error) {
	if a.sum == "" {
		return "", fmt.Errorf("no archive is pinned for %s", a.platform)
	}
	index, err := a.readIndex(ctx)
	if err != nil {
		return "", fmt.Errorf("index %s: %w", a.index, err)
	}
	link, err := a.find(index)
	if err != nil {
		return "", fmt.Errorf("index %s: %w", a.index, err)
	}
	tool, err := b.tool(ctx, "setup-envtest", "sigs.k8s.io/controller-runtime/tools/setup-envtest")
	if err != nil {
		return "", err
	}
	b.progress("downloading etcd and kube-apiserver %s from %s, once", a.version, link)
	folder, err := b.setupEnvtest(ctx, tool, a, index, to)
	if err != nil {
		return "", fmt.Errorf("%s: %w", link, err)
	}
	return folder, nil
}

// readIndex returns what the index's URL answers.
func (a archive) readIndex(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.indexLimit, fmt.Errorf("no answer within %s", a.indexLimit))
	defer cancel()
	content, err := get(ctx, a.index)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return content, err
}

func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		if repeatsURL := (*neturl.Error)(nil); errors.As(err, &repeatsURL) {
			err = repeatsURL.Err
		}
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	return io.ReadAll(response.Body)
}

// find returns the archive's URL in an index whose checksum is ours.
func (a archive) find(index []byte) (link string, err error) {
	var parsed struct {
		Releases map[string]map[string]struct {
			Hash     string `json:"hash"`
			SelfLink string `json:"selfLink"`
		} `json:"releases"`
	}
	if err := yaml.Unmarshal(index, &parsed); err != nil {
		return "", err
	}
	name := a.name()
	found, ok := parsed.Releases["v"+a.version][name]
	switch {
	case !ok:
		return "", fmt.Errorf("%s is not offered", name)
	case found.Hash != a.sum:
		return "", fmt.Errorf("%s has the checksum %s, pinned is %s", name, found.Hash, a.sum)
	default:
		return found.SelfLink, nil
	}
}

// setupEnvtest runs setup-envtest with a copy of the index, and returns the folder that
// it names.
func (b builder) setupEnvtest(ctx context.Context, tool string, a archive, index []byte, to string) (string, error) {
	url, stop, err := serve(index)
	if err != nil {
		return "", err
	}
	defer stop()
	// It leaves the archive behind when it is killed: the folder goes in any case.
	tmp := filepath.Join(to, "tmp")
	if err := os.Mkdir(tmp, 0o750); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, a.limit, fmt.Errorf("not complete within %s", a.limit))
	defer cancel()
	defer b.keepReporting(5*time.Second, func() string {
		return fmt.Sprintf("still downloading, %d MiB", size(tmp)>>20)
	})()
	cmd := exec.CommandContext(ctx, tool, "use", a.version, "--print", "path", "--bin-dir", to, "--index", url)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	return output(ctx, cmd)
}

// size returns how many bytes the files in a folder have.
func size(dir string) (bytes int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// serve answers with content on a port of its own until stop is called: setup-envtest
// reads an index by HTTP only.
func serve(content []byte) (url string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }),
		ReadHeaderTimeout: 10 * time.Second,
	}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}
