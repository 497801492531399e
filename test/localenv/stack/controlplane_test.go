// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// mirror serves an index and the archive that it names.
type mirror struct {
	*httptest.Server
	index   http.HandlerFunc
	archive []byte
	sum     string
	// hangs says that the second half of the archive never arrives.
	hangs bool
}

func newMirror(t *testing.T) *mirror {
	t.Helper()
	m := &mirror{archive: packed(t, "etcd", "kube-apiserver", "kubectl")}
	m.sum = fmt.Sprintf("%x", sha512.Sum512(m.archive))
	m.index = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "releases: {v1.36.2: {envtest-v1.36.2-%s-%s.tar.gz: {hash: %s, selfLink: %s/archive}}}",
			runtime.GOOS, runtime.GOARCH, m.sum, m.URL)
	}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/archive" {
			m.answer(w, r)
			return
		}
		m.index(w, r)
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *mirror) answer(w http.ResponseWriter, r *http.Request) {
	if !m.hangs {
		_, _ = w.Write(m.archive)
		return
	}
	_, _ = w.Write(m.archive[:len(m.archive)/2])
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// packed is an archive like those of controller-tools. Its programs print "downloaded".
func packed(t *testing.T, names ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	pack := tar.NewWriter(zip)
	script := "#!/bin/sh\necho downloaded\n"
	var failed error
	for _, name := range names {
		header := &tar.Header{Name: "controller-tools/envtest/" + name, Mode: 0o755, Size: int64(len(script))}
		failed = errors.Join(failed, pack.WriteHeader(header))
		_, err := pack.Write([]byte(script))
		failed = errors.Join(failed, err)
	}
	if err := errors.Join(failed, pack.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// instantGo builds programs that print "built" in no time.
const instantGo = `#!/bin/sh
test "$3" = list && echo v1.36.3
while [ $# -gt 0 ]; do
	test "$1" = -o && { printf '#!/bin/sh\necho built\n' >"$2"; chmod +x "$2"; }
	shift
done
`

// controlPlaneScript runs controlplane.sh. It returns what that prints and its folder.
func controlPlaneScript(t *testing.T, version, index string) (output, folder string) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs setup-envtest: make test-localenv")
	}
	tmp := t.TempDir()
	folder = filepath.Join(tmp, "control plane")
	compiler := filepath.Join(tmp, "go")
	if err := os.WriteFile(compiler, []byte(instantGo), 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	downloader := filepath.Join(root, "bin", "setup-envtest")
	if _, err := os.Stat(downloader); err != nil {
		t.Fatalf("%v: run 'make test-localenv'", err)
	}
	cmd := exec.Command("./controlplane.sh", folder, version, index)
	cmd.Env = append(os.Environ(), "GO="+compiler, "SETUP_ENVTEST="+downloader)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	return string(out), folder
}

// expectPrograms expects the two programs in the folder, which print this, and nothing else.
func expectPrograms(g *WithT, folder, prints string) {
	for _, name := range []string{"etcd", "kube-apiserver"} {
		out, err := exec.Command(filepath.Join(folder, name)).Output()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(out)).To(Equal(prints + "\n"))
	}
	entries, err := os.ReadDir(folder)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).To(HaveLen(2))
}

func TestControlPlaneIsDownloadedFromAMirror(t *testing.T) {
	g := NewWithT(t)
	m := newMirror(t)
	output, folder := controlPlaneScript(t, "1.36.2", m.URL)
	g.Expect(output).To(Equal("Downloading etcd and kube-apiserver 1.36.2, by the index " + m.URL + ", once\n"))
	expectPrograms(g, folder, "downloaded")
}

func TestControlPlaneIsBuiltOnRequest(t *testing.T) {
	g := NewWithT(t)
	output, folder := controlPlaneScript(t, "source", "")
	g.Expect(output).To(HavePrefix("Building etcd and kube-apiserver v1.36.3 from source, once"))
	expectPrograms(g, folder, "built")
}

// Whatever fails is said in one line, and nothing is left of it.
func TestControlPlaneIsBuiltWhereItCannotBeDownloaded(t *testing.T) {
	for name, row := range map[string]struct {
		prepare func(t *testing.T, m *mirror)
		why     string
	}{
		"nobody there": {func(_ *testing.T, m *mirror) { m.Close() }, "connection refused"},
		"no answer": {func(_ *testing.T, m *mirror) {
			m.index = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		}, "nothing arrived for 5 s"},
		"half of an archive": {func(_ *testing.T, m *mirror) { m.hangs = true }, "nothing arrived for 5 s"},
		"another checksum":   {func(_ *testing.T, m *mirror) { m.sum = strings.Repeat("0", 128) }, "checksum mismatch"},
		"an empty index":     {func(_ *testing.T, m *mirror) { m.index = emptyIndex }, "unable to find"},
		"no etcd in it":      {func(t *testing.T, m *mirror) { m.serve(packed(t, "kube-apiserver")) }, "etcd"},
		"a page to sign in":  {func(_ *testing.T, m *mirror) { m.serve([]byte("<html>Sign in")) }, "gz"},
		"an index not found": {func(_ *testing.T, m *mirror) { m.index = http.NotFound }, "404 Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			m := newMirror(t)
			row.prepare(t, m)
			output, folder := controlPlaneScript(t, "1.36.2", m.URL)
			g.Expect(output).To(MatchRegexp("(?m)^Not downloaded: .*" + row.why + ".*\nBuilding etcd"))
			expectPrograms(g, folder, "built")
		})
	}
}

func emptyIndex(http.ResponseWriter, *http.Request) {}

// serve has the mirror serve another archive, with its checksum.
func (m *mirror) serve(archive []byte) {
	m.archive, m.sum = archive, fmt.Sprintf("%x", sha512.Sum512(archive))
}

func TestAnAuditLogIsReadWhileItIsWritten(t *testing.T) {
	g := NewWithT(t)
	log := `{"verb":"get","user":{"username":"mcm"},"requestURI":"/version","responseStatus":{"code":200}}
{"verb":"update","user":{"username":"mcm"},"objectRef":{"resource":"machines","namespace":"shoot","name":"first",
"apiGroup":"machine.sapcloud.io","subresource":"status"},"responseStatus":{"code":403}}
{"verb":"list","user":{"usern`
	g.Expect(readAuditLog(strings.NewReader(log))).To(ConsistOf(Request{
		User: "mcm", Verb: "update", Group: "machine.sapcloud.io", Resource: "machines", Subresource: "status",
		Namespace: "shoot", Name: "first", Code: 403,
	}))
	_, err := readAuditLog(strings.NewReader("no JSON"))
	g.Expect(err).To(HaveOccurred())
}
