// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	neturl "net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// envtestVersion is the version of the archive: the newest patch of the minor version
// in hack/tools/controlplane that controller-tools had published when it was pinned.
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
	// envtestURL is where controller-tools publishes an archive, by version and name.
	envtestURL = "https://github.com/kubernetes-sigs/controller-tools/releases/download/envtest-v%s/%s"
	// urlVariable names an archive at another place, such as a mirror's.
	urlVariable = "LOCALENV_ENVTEST_URL"
	// sumVariable is the SHA512 to expect instead of the pinned one, for an archive
	// that a mirror has packed itself.
	sumVariable = "LOCALENV_ENVTEST_SHA512"
)

// archive is an archive with etcd and kube-apiserver.
type archive struct {
	version, platform string
	// sum is its SHA512; empty if none is pinned for the platform.
	sum string
	url string
	// answerLimit is how long the server may take to answer, limit the whole download.
	answerLimit, limit time.Duration
}

// pinnedArchive returns the archive for this computer.
func pinnedArchive() archive {
	a := archive{
		version:     envtestVersion,
		platform:    runtime.GOOS + "-" + runtime.GOARCH,
		answerLimit: 5 * time.Second,
		// What takes longer than this is not faster than the build.
		limit: 4 * time.Minute,
	}
	name := fmt.Sprintf("envtest-v%s-%s.tar.gz", a.version, a.platform)
	a.url = cmp.Or(os.Getenv(urlVariable), fmt.Sprintf(envtestURL, a.version, name))
	a.sum = cmp.Or(os.Getenv(sumVariable), envtestSums[name])
	return a
}

// folder is where the programs belong in bin/controlplane. Another checksum makes
// another folder.
func (a archive) folder() string {
	return fmt.Sprintf("envtest-%s-%s-%.12s", a.version, a.platform, a.sum)
}

// download downloads the archive, compares its checksum, and unpacks etcd and kube-apiserver
// into the folder to.
func (b builder) download(ctx context.Context, a archive, to string) error {
	if a.sum == "" {
		return fmt.Errorf("no archive is pinned for %s", a.platform)
	}
	b.progress("downloading etcd and kube-apiserver %s from %s, once", a.version, a.url)
	ctx, cancel := context.WithTimeoutCause(ctx, a.limit, fmt.Errorf("not complete within %s", a.limit))
	defer cancel()
	packed, err := os.Create(filepath.Join(to, "archive.tar.gz"))
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(packed.Close(), os.Remove(packed.Name())) }()
	if err := b.fetch(ctx, a, packed); err != nil {
		return fmt.Errorf("%s: %w", a.url, cmp.Or(context.Cause(ctx), err))
	}
	if _, err := packed.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return unpack(packed, to)
}

// fetch writes the archive to a file, and fails if it is not the one that is pinned.
func (b builder) fetch(ctx context.Context, a archive, into io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: a.answerLimit}).DialContext, TLSHandshakeTimeout: a.answerLimit, ResponseHeaderTimeout: a.answerLimit,
	}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		if repeatsURL := (*neturl.Error)(nil); errors.As(err, &repeatsURL) {
			err = repeatsURL.Err
		}
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	var read atomic.Int64
	defer b.keepReporting(5*time.Second, func() string { return fmt.Sprintf("still downloading, %d MiB", read.Load()>>20) })()
	sum := sha512.New()
	if _, err := io.Copy(io.MultiWriter(into, sum, counter{&read}), response.Body); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != a.sum {
		return fmt.Errorf("the checksum is %s, pinned is %s", got, a.sum)
	}
	return nil
}

// counter counts what is written to it.
type counter struct{ bytes *atomic.Int64 }

func (c counter) Write(content []byte) (int, error) {
	c.bytes.Add(int64(len(content)))
	return len(content), nil
}

// unpack writes the programs of a control plane in an archive to a folder.
func unpack(packed io.Reader, to string) error {
	zip, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	content := tar.NewReader(zip)
	for {
		header, err := content.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Base(header.Name)
		if header.Typeflag != tar.TypeReg || !slices.Contains([]string{"etcd", "kube-apiserver"}, name) {
			continue
		}
		program, err := os.OpenFile(filepath.Join(to, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		_, err = io.Copy(program, content) //nolint:gosec // the checksum says what it is
		if err := errors.Join(err, program.Close()); err != nil {
			return err
		}
	}
}
