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
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// origin serves an index and the archive it names, and counts what it is asked for.
type origin struct {
	*httptest.Server
	// sum is the checksum of content, the right archive.
	sum     string
	content []byte
	// index and archive answer; tests replace them.
	index, archive http.HandlerFunc

	mu    sync.Mutex
	asked []string
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	o := &origin{content: packed(t, "downloaded")}
	o.sum = sumOf(o.content)
	o.index = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(o.indexOf(envtestVersion, o.sum)) }
	o.archive = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(o.content) }
	mux := http.NewServeMux()
	mux.HandleFunc("/index.yaml", func(w http.ResponseWriter, r *http.Request) { o.index(w, r) })
	mux.HandleFunc("/archive.tar.gz", func(w http.ResponseWriter, r *http.Request) { o.archive(w, r) })
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.asked = append(o.asked, r.URL.Path)
		o.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(o.Close)
	return o
}

// indexOf is an index with one version, for this computer's platform.
func (o *origin) indexOf(version, sum string) []byte {
	name := fmt.Sprintf("envtest-v%s-%s.tar.gz", version, pinnedArchive().platform)
	return fmt.Appendf(nil, "releases:\n  v%s:\n    %s:\n      hash: %s\n      selfLink: %s/archive.tar.gz\n", version, name, sum, o.URL)
}

func (o *origin) requests() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string{}, o.asked...)
}

// pinned is the archive that o offers.
func (o *origin) pinned() archive {
	a := pinnedArchive()
	a.index, a.sum = o.URL+"/index.yaml", o.sum
	a.indexLimit, a.limit = time.Minute, time.Minute
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

// repository is a root with the real setup-envtest, and with a control plane that is
// built in no time: its programs print "built".
type repository struct {
	builder
	mu    sync.Mutex
	lines []string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	real, err := Root()
	if err != nil {
		t.Fatal(err)
	}
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
	// The tool is built once, where it is built for real.
	programs := filepath.Join(real, "bin", "localenv")
	err = errors.Join(
		os.MkdirAll(programs, 0o750),
		os.Mkdir(r.bin(), 0o750),
		os.Symlink(programs, r.bin("localenv")),
		os.Symlink(filepath.Join(real, "hack", "tools", "setup-envtest"), filepath.Join(r.root, "hack", "tools", "setup-envtest")))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// killSetupEnvtest has setup-envtest die while it extracts: it leaves a read-only
// version folder with one program.
func (r *repository) killSetupEnvtest(t *testing.T) {
	t.Helper()
	module := filepath.Join(r.root, "hack", "tools", "setup-envtest")
	if err := errors.Join(os.Remove(module), os.Remove(r.bin("localenv"))); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, module, map[string]string{
		"go.mod": `module example.com/setup-envtest

go 1.26

require sigs.k8s.io/controller-runtime/tools/setup-envtest v0.25.1

replace sigs.k8s.io/controller-runtime/tools/setup-envtest => ./fake
`,
		"fake/go.mod": "module sigs.k8s.io/controller-runtime/tools/setup-envtest\n\ngo 1.26\n",
		"fake/main.go": `package main

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

func main() {
	to := filepath.Join(os.Args[slices.Index(os.Args, "--bin-dir")+1], "k8s", "1.36.2")
	_ = os.MkdirAll(to, 0o755)
	_ = os.WriteFile(filepath.Join(to, "kube-apiserver"), []byte("half"), 0o555)
	_ = os.Chmod(to, 0o555)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
`,
	})
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
	g.Expect(o.requests()).To(Equal([]string{"/index.yaml", "/archive.tar.gz"}), "setup-envtest reads our copy of the index")

	// The owner can remove it.
	info, err := os.Stat(filepath.Dir(found.etcd))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm() & 0o200).NotTo(BeZero())

	// It is not asked for again, and a second start works offline.
	o.Close()
	again, err := r.ownControlPlane(t.Context(), &a)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(found))
}

// Whatever fails, it is said in one line, nothing is left, and the control plane is
// built.
func TestControlPlaneIsBuiltWhereItCannotBeDownloaded(t *testing.T) {
	const version = envtestVersion
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, row := range map[string]struct {
		prepare func(t *testing.T, o *origin, a *archive, r *repository)
		why     string
		// asked is what the origin was asked for; nil where that does not matter.
		asked []string
	}{
		"no index": {
			prepare: func(_ *testing.T, o *origin, _ *archive, _ *repository) { o.Close() },
			why:     "index.yaml: dial tcp",
		},
		"an index that is not there": {
			prepare: func(_ *testing.T, o *origin, _ *archive, _ *repository) { o.index = http.NotFound },
			why:     "index.yaml: 404 Not Found",
			asked:   []string{"/index.yaml"},
		},
		"an index that does not answer in time": {
			prepare: func(_ *testing.T, o *origin, a *archive, _ *repository) {
				o.index, a.indexLimit = hang, 50*time.Millisecond
			},
			why: "index.yaml: no answer within 50ms",
		},
		"an index that does not end in time": {
			prepare: func(_ *testing.T, o *origin, a *archive, _ *repository) {
				o.index = func(w http.ResponseWriter, r *http.Request) {
					_, _ = w.Write([]byte("releases:\n"))
					_ = http.NewResponseController(w).Flush()
					hang(w, r)
				}
				a.indexLimit = 50 * time.Millisecond
			},
			why: "index.yaml: no answer within 50ms",
		},
		"an index that is none": {
			prepare: func(_ *testing.T, o *origin, _ *archive, _ *repository) {
				o.index = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>\n\tSign in")) }
			},
			why:   "index.yaml: error",
			asked: []string{"/index.yaml"},
		},
		"an index with another version only": {
			prepare: func(_ *testing.T, o *origin, _ *archive, _ *repository) {
				o.index = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(o.indexOf("1.36.9", o.sum)) }
			},
			why:   "envtest-v" + version + "-" + pinnedArchive().platform + ".tar.gz is not offered",
			asked: []string{"/index.yaml"},
		},
		"a platform that is not offered": {
			prepare: func(_ *testing.T, _ *origin, a *archive, _ *repository) { a.platform = "plan9-mips" },
			why:     "envtest-v" + version + "-plan9-mips.tar.gz is not offered",
			asked:   []string{"/index.yaml"},
		},
		"a platform without a checksum": {
			prepare: func(_ *testing.T, _ *origin, a *archive, _ *repository) { a.platform, a.sum = "plan9-mips", "" },
			why:     "no archive is pinned for plan9-mips",
			asked:   []string{},
		},
		"an index with another checksum": {
			prepare: func(t *testing.T, o *origin, _ *archive, _ *repository) {
				o.content = packed(t, "evil")
				o.index = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(o.indexOf(version, sumOf(o.content))) }
			},
			why:   "has the checksum " + sumOf(packed(t, "evil")) + ", pinned is ",
			asked: []string{"/index.yaml"},
		},
		"an archive with another checksum": {
			prepare: func(t *testing.T, o *origin, _ *archive, _ *repository) { o.content = packed(t, "evil") },
			why:     "checksum mismatch",
		},
		"an archive that is not there": {
			prepare: func(_ *testing.T, o *origin, _ *archive, _ *repository) { o.archive = http.NotFound },
			why:     "404 Not Found",
		},
		"half an archive": {
			prepare: func(_ *testing.T, o *origin, _ *archive, _ *repository) {
				o.archive = func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Length", strconv.Itoa(len(o.content)))
					_, _ = w.Write(o.content[:len(o.content)/2])
				}
			},
			why: "unexpected EOF",
		},
		"half an archive of unknown length": {
			prepare: func(_ *testing.T, o *origin, _ *archive, _ *repository) {
				o.archive = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(o.content[:len(o.content)/2]) }
			},
			why: "checksum mismatch",
		},
		"an archive that does not end in time": {
			prepare: func(_ *testing.T, o *origin, a *archive, _ *repository) {
				o.archive = func(w http.ResponseWriter, r *http.Request) {
					_, _ = w.Write(o.content[:1])
					_ = http.NewResponseController(w).Flush()
					hang(w, r)
				}
				a.limit = time.Second
			},
			why: "archive.tar.gz: not complete within 1s",
		},
		"an archive without etcd": {
			prepare: func(_ *testing.T, o *origin, a *archive, _ *repository) {
				var out bytes.Buffer
				_ = gzip.NewWriter(&out).Close()
				o.content, o.sum = out.Bytes(), sumOf(out.Bytes())
				a.sum = o.sum
			},
			why: "etcd: no such file or directory",
		},
		"killed at extraction": {
			prepare: func(t *testing.T, _ *origin, _ *archive, r *repository) { r.killSetupEnvtest(t) },
			why:     "signal: killed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o, r := newOrigin(t), newRepository(t)
			a := o.pinned()
			row.prepare(t, o, &a, r)
			found, err := r.ownControlPlane(t.Context(), &a)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(says(t, found.etcd)).To(Equal("built"))
			g.Expect(says(t, found.apiServer)).To(Equal("built"))
			g.Expect(r.reported()).To(ContainElement(And(
				HavePrefix("not downloaded: "), ContainSubstring(row.why), Not(ContainSubstring("\n")))))
			g.Expect(r.left(t)).To(ConsistOf(filepath.Base(filepath.Dir(found.etcd))))
			if row.asked != nil {
				g.Expect(o.requests()).To(BeEquivalentTo(row.asked))
			}
		})
	}
}

// A process that was killed at extraction leaves a folder; so may an older version.
func TestLeftoversDoNotPassAsComplete(t *testing.T) {
	g := NewWithT(t)
	o, r := newOrigin(t), newRepository(t)
	a := o.pinned()
	half := r.bin("controlplane", "next", "1", "k8s", "1.36.2-linux-amd64")
	writeFiles(t, half, map[string]string{"etcd": "half"})
	g.Expect(os.Chmod(half, 0o555)).To(Succeed())
	g.Expect(os.Mkdir(r.bin("controlplane", a.folder()), 0o555)).To(Succeed())
	found, err := r.ownControlPlane(t.Context(), &a)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(says(t, found.etcd)).To(Equal("downloaded"))
	g.Expect(r.left(t)).To(ConsistOf(a.folder()))
}

// Root may remove it in any case; everybody else needs write permission first.
func TestReadOnlyFolderIsRemoved(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "next")
	version := filepath.Join(dir, "k8s", "version")
	writeFiles(t, version, map[string]string{"etcd": "half"})
	g.Expect(os.Chmod(version, 0o555)).To(Succeed())
	g.Expect(removeAll(dir)).To(Succeed())
	g.Expect(dir).NotTo(BeAnExistingFile())
	g.Expect(removeAll(dir)).To(Succeed(), "where there is none")
}

func TestDownloadThatIsCancelled(t *testing.T) {
	for _, step := range []string{"index", "archive"} {
		t.Run(step, func(t *testing.T) {
			g := NewWithT(t)
			o, r := newOrigin(t), newRepository(t)
			interrupted := errors.New("interrupted")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			stop := func(_ http.ResponseWriter, r *http.Request) {
				cancel(interrupted)
				<-r.Context().Done()
			}
			if step == "index" {
				o.index = stop
			} else {
				o.archive = stop
			}
			a := o.pinned()
			_, err := r.ownControlPlane(ctx, &a)
			g.Expect(err).To(MatchError(interrupted))
			g.Expect(r.reported()).NotTo(ContainElement(HavePrefix("not downloaded")))
			g.Expect(r.left(t)).To(BeEmpty())
		})
	}
}

func TestVariablesSayWhereTheControlPlaneComesFrom(t *testing.T) {
	for name, row := range map[string]struct {
		assets bool
		build  string
		want   string
		asked  []string
	}{
		"none":                        {want: "downloaded", asked: []string{"/index.yaml", "/archive.tar.gz"}},
		"LOCALENV_BUILD":              {build: fromSource, want: "built", asked: []string{}},
		"KUBEBUILDER_ASSETS":          {assets: true, want: "given", asked: []string{}},
		"both":                        {assets: true, build: fromSource, want: "given", asked: []string{}},
		"a LOCALENV_BUILD of no kind": {build: "sauce", want: `build: LOCALENV_BUILD=sauce: only "source" is known`, asked: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o, r := newOrigin(t), newRepository(t)
			t.Setenv(indexVariable, o.URL+"/index.yaml")
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
			g.Expect(o.requests()).To(BeEquivalentTo(row.asked))
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
