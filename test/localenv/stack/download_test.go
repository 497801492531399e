// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// origin serves an archive, and counts how often it is asked for it.
type origin struct {
	*httptest.Server
	// sum is the checksum of content, the right archive.
	sum     string
	content []byte
	// archive answers; tests replace it.
	archive http.HandlerFunc
	asked   atomic.Int64
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	o := &origin{content: packed(t, "downloaded")}
	o.sum = sumOf(o.content)
	o.archive = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(o.content) }
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.asked.Add(1)
		o.archive(w, r)
	}))
	t.Cleanup(o.Close)
	return o
}

// pinned is the archive that o offers.
func (o *origin) pinned() archive {
	a := pinnedArchive()
	a.url, a.sum = o.URL+"/archive.tar.gz", o.sum
	a.answerLimit, a.limit = time.Minute, time.Minute
	return a
}

// packed is an archive like those of controller-tools. Its programs print text.
func packed(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	pack := tar.NewWriter(zip)
	script := "#!/bin/sh\necho " + text + "\n"
	var failed error
	for _, name := range []string{"kube-apiserver", "etcd", "kubectl"} {
		header := &tar.Header{Name: "controller-tools/envtest/" + name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(script))}
		failed = errors.Join(failed, pack.WriteHeader(header))
		_, err := pack.Write([]byte(script))
		failed = errors.Join(failed, err)
	}
	if err := errors.Join(failed, pack.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func sumOf(content []byte) string {
	sum := sha512.Sum512(content)
	return hex.EncodeToString(sum[:])
}

// repository is a root with a control plane that is built in no time: its programs print
// "built".
type repository struct {
	builder
	mu    sync.Mutex
	lines []string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{}
	r.builder = builder{root: t.TempDir(), progress: func(format string, args ...any) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lines = append(r.lines, fmt.Sprintf(format, args...))
	}}
	module := r.controlPlaneModule()
	for name, path := range map[string]string{"etcd": "go.etcd.io/etcd/server/v3", "kubernetes": "k8s.io/kubernetes"} {
		newModule(t, filepath.Join(module, name), path, map[string]string{".": `println("built")`, "cmd/kube-apiserver": `println("built")`})
	}
	writeFiles(t, module, map[string]string{"go.sum": "", "go.mod": `module example.com/controlplane

go 1.26

require (
	go.etcd.io/etcd/server/v3 v3.6.0
	k8s.io/kubernetes v1.36.3
)

replace (
	go.etcd.io/etcd/server/v3 => ./etcd
	k8s.io/kubernetes => ./kubernetes
)
`})
	if err := os.Mkdir(r.bin(), 0o750); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *repository) reported() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.lines...)
}

// left returns what bin/controlplane holds but for the lock.
func (r *repository) left(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(r.bin("controlplane"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.Name() != "build.lock" {
			names = append(names, entry.Name())
		}
	}
	return names
}

func TestControlPlaneIsDownloaded(t *testing.T) {
	g := NewWithT(t)
	o, r := newOrigin(t), newRepository(t)
	a := o.pinned()
	found, err := r.ownControlPlane(t.Context(), &a)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.reported()).To(ContainElement("downloading etcd and kube-apiserver " + envtestVersion + " from " + o.URL + "/archive.tar.gz, once"))
	g.Expect(says(t, found.etcd)).To(Equal("downloaded"))
	g.Expect(says(t, found.apiServer)).To(Equal("downloaded"))
	g.Expect(r.left(t)).To(ConsistOf(a.folder()))
	programs, err := os.ReadDir(filepath.Dir(found.etcd))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(programs).To(HaveLen(2), "nothing else of the archive is kept")

	// It is not asked for again, and a second start works offline.
	o.Close()
	again, err := r.ownControlPlane(t.Context(), &a)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(found))
	g.Expect(o.asked.Load()).To(BeEquivalentTo(1))
}

// Whatever fails, it is said in one line, nothing is left, and the control plane is
// built.
func TestControlPlaneIsBuiltWhereItCannotBeDownloaded(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, row := range map[string]struct {
		prepare func(t *testing.T, o *origin, a *archive)
		why     string
	}{
		"nobody there": {func(_ *testing.T, o *origin, _ *archive) { o.Close() }, "archive.tar.gz: dial tcp"},
		"no answer in time": {func(_ *testing.T, o *origin, a *archive) {
			o.archive, a.answerLimit = hang, 50*time.Millisecond
		}, "archive.tar.gz: net/http: timeout awaiting response headers"},
		"a platform without a checksum": {func(_ *testing.T, _ *origin, a *archive) {
			a.platform, a.sum = "plan9-mips", ""
		}, "no archive is pinned for plan9-mips"},
		"another checksum": {func(t *testing.T, o *origin, _ *archive) { o.content = packed(t, "evil") },
			"the checksum is " + sumOf(packed(t, "evil")) + ", pinned is "},
		"not there": {func(_ *testing.T, o *origin, _ *archive) { o.archive = http.NotFound }, "404 Not Found"},
		"half of it": {func(_ *testing.T, o *origin, _ *archive) {
			o.archive = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", strconv.Itoa(len(o.content)))
				_, _ = w.Write(o.content[:len(o.content)/2])
			}
		}, "unexpected EOF"},
		"half of it, of unknown length": {func(_ *testing.T, o *origin, _ *archive) {
			o.archive = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(o.content[:len(o.content)/2]) }
		}, "the checksum is "},
		"no end in time": {func(_ *testing.T, o *origin, a *archive) {
			o.archive = func(w http.ResponseWriter, r *http.Request) {
				_, _ = w.Write(o.content[:1])
				_ = http.NewResponseController(w).Flush()
				hang(w, r)
			}
			a.limit = time.Second
		}, "archive.tar.gz: not complete within 1s"},
		"no archive": {func(_ *testing.T, o *origin, a *archive) {
			o.content = []byte("<html>Sign in")
			a.sum = sumOf(o.content)
		}, "gzip: invalid header"},
		"no etcd in it": {func(_ *testing.T, o *origin, a *archive) {
			var out bytes.Buffer
			_ = gzip.NewWriter(&out).Close()
			o.content, a.sum = out.Bytes(), sumOf(out.Bytes())
		}, "etcd: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o, r := newOrigin(t), newRepository(t)
			a := o.pinned()
			row.prepare(t, o, &a)
			found, err := r.ownControlPlane(t.Context(), &a)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(says(t, found.etcd)).To(Equal("built"))
			g.Expect(says(t, found.apiServer)).To(Equal("built"))
			g.Expect(r.reported()).To(ContainElement(And(
				HavePrefix("not downloaded: "), ContainSubstring(row.why), Not(ContainSubstring("\n")))))
			g.Expect(r.left(t)).To(ConsistOf(filepath.Base(filepath.Dir(found.etcd))))
		})
	}
}

// A process that was killed leaves a folder.
func TestLeftoversDoNotPassAsComplete(t *testing.T) {
	g := NewWithT(t)
	o, r := newOrigin(t), newRepository(t)
	a := o.pinned()
	writeFiles(t, r.bin("controlplane", "next", "1"), map[string]string{"etcd": "half"})
	g.Expect(os.Mkdir(r.bin("controlplane", a.folder()), 0o755)).To(Succeed())
	found, err := r.ownControlPlane(t.Context(), &a)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(says(t, found.etcd)).To(Equal("downloaded"))
	g.Expect(r.left(t)).To(ConsistOf(a.folder()))
}

func TestDownloadThatIsCancelled(t *testing.T) {
	g := NewWithT(t)
	o, r := newOrigin(t), newRepository(t)
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	o.archive = func(_ http.ResponseWriter, r *http.Request) {
		cancel(interrupted)
		<-r.Context().Done()
	}
	a := o.pinned()
	_, err := r.ownControlPlane(ctx, &a)
	g.Expect(err).To(MatchError(interrupted))
	g.Expect(r.reported()).NotTo(ContainElement(HavePrefix("not downloaded")))
	g.Expect(r.left(t)).To(BeEmpty())
}

func TestVariablesSayWhereTheControlPlaneComesFrom(t *testing.T) {
	for name, row := range map[string]struct {
		assets bool
		build  string
		want   string
		asked  int
	}{
		"none":                        {want: "downloaded", asked: 1},
		"LOCALENV_BUILD":              {build: fromSource, want: "built"},
		"KUBEBUILDER_ASSETS":          {assets: true, want: "given"},
		"both":                        {assets: true, build: fromSource, want: "given"},
		"a LOCALENV_BUILD of no kind": {build: "sauce", want: `build: LOCALENV_BUILD=sauce: only "source" is known`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o, r := newOrigin(t), newRepository(t)
			t.Setenv(urlVariable, o.URL+"/archive.tar.gz")
			t.Setenv(sumVariable, o.sum)
			t.Setenv(buildVariable, row.build)
			t.Setenv(assetsVariable, "")
			if row.assets {
				dir := t.TempDir()
				for _, name := range []string{"etcd", "kube-apiserver"} {
					g.Expect(os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho given\n"), 0o700)).To(Succeed())
				}
				t.Setenv(assetsVariable, dir)
			}
			found, err := r.controlPlane(t.Context())
			if !strings.HasPrefix(row.want, "build: ") {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(says(t, found.etcd)).To(Equal(row.want))
			} else {
				g.Expect(err).To(MatchError(row.want))
			}
			g.Expect(o.asked.Load()).To(BeEquivalentTo(row.asked))
		})
	}
}

// What is built and what is downloaded are patches of one minor version.
func TestDownloadIsOfTheMinorVersionThatIsBuilt(t *testing.T) {
	g := NewWithT(t)
	root, err := Root()
	g.Expect(err).NotTo(HaveOccurred())
	goMod, err := os.ReadFile(filepath.Join(builder{root: root}.controlPlaneModule(), "go.mod"))
	g.Expect(err).NotTo(HaveOccurred())
	built := regexp.MustCompile(`k8s\.io/kubernetes v(\d+\.\d+\.)\d+`).FindSubmatch(goMod)
	g.Expect(built).NotTo(BeNil())
	g.Expect(envtestVersion).To(HavePrefix(string(built[1])))
	for platform, sum := range envtestSums {
		g.Expect(sum).To(MatchRegexp("^[0-9a-f]{128}$"), platform)
	}
}
