// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/kubernetes"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// runbookBlocks are the shell commands of the runbooks, in their order.
func runbookBlocks(t *testing.T) []string {
	t.Helper()
	var blocks []string
	for _, match := range regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$").FindAllStringSubmatch(kubernetes.Runbooks,
		-1) {
		blocks = append(blocks, match[1])
	}
	if len(blocks) < 15 {
		t.Fatalf("only %d blocks were found", len(blocks))
	}
	return blocks
}

// blockWith returns the one block that has the text.
func blockWith(t *testing.T, text string) string {
	t.Helper()
	var found []string
	for _, block := range runbookBlocks(t) {
		if strings.Contains(block, text) {
			found = append(found, block)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d blocks have %s", len(found), text)
	}
	return found[0]
}

// TestRunbooksAreForGardenerToo: what Gardener names otherwise stands in a variable.
func TestRunbooksAreForGardenerToo(t *testing.T) {
	blocks := runbookBlocks(t)
	for i, names := range [][]string{
		{"CONTAINER=machine-controller\n", "PODS=app.kubernetes.io/name=machine-controller-manager\n"},
		{"CONTAINER=machine-controller-manager-provider-stackit\n", "PODS=app=kubernetes,role=machine-controller-manager\n"},
	} {
		for _, name := range names {
			if !strings.Contains(blocks[i], name) {
				t.Errorf("block %d lacks %s", i, name)
			}
		}
	}
	named := regexp.MustCompile(`<namespace>|-c machine-controller|app\.kubernetes\.io|logs deployment/`)
	for _, block := range blocks[2:] {
		if match := named.FindString(block); match != "" {
			t.Errorf("%q stands in a command, want a variable:\n%s", match, block)
		}
	}
}

// TestTheRunbookOfCapacityHasItsReasons: all that set its alert off.
func TestTheRunbookOfCapacityHasItsReasons(t *testing.T) {
	_, section, _ := strings.Cut(kubernetes.Runbooks, "\n## StackitQuotaOrCapacityExhausted\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, reason := range provider.Reasons() {
		isListed := strings.Contains(section, "\n- "+string(reason)+": ")
		if want := reason.Code() == codes.ResourceExhausted; isListed != want {
			t.Errorf("%s, %s: it is listed: %t", reason, reason.Code(), isListed)
		}
	}
}

func TestRunbooksAreShell(t *testing.T) {
	for _, block := range runbookBlocks(t) {
		if output, err := exec.CommandContext(t.Context(), "sh", "-n", "-c", block).CombinedOutput(); err != nil {
			t.Errorf("%v: %s\n%s", err, output, block)
		}
	}
}

// computer is where a block runs: with programs of our own before those that are there.
type computer struct {
	t      *testing.T
	folder string
}

func newComputer(t *testing.T, needs ...string) *computer {
	t.Helper()
	for _, program := range needs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not there", program)
		}
	}
	return &computer{t: t, folder: t.TempDir()}
}

// program makes a program of shell commands.
func (c *computer) program(name, commands string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.folder, name), []byte("#!/bin/sh\n"+commands), 0o700); err != nil {
		c.t.Fatal(err)
	}
}

// run runs the block and returns what it prints.
func (c *computer) run(block string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", block)
	cmd.Dir = c.folder
	cmd.Env = append(os.Environ(), "PATH="+c.folder+":"+os.Getenv("PATH"))
	cmd.WaitDelay = time.Second
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		c.t.Errorf("the block does not end: %v\n%s", err, output)
	}
	return string(output)
}

// closedPort returns a port at which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// forwarding returns the blocks that open the port of the leader, with another port.
func forwarding(t *testing.T, port string) string {
	t.Helper()
	return runbookBlocks(t)[1] + strings.ReplaceAll(blockWith(t, "port-forward"), "10259", port) + "kill $FORWARD\n"
}

// TestTheRunbooksWaitUntilThePortIsOpen opens the port after curl was refused once.
func TestTheRunbooksWaitUntilThePortIsOpen(t *testing.T) {
	c, port := newComputer(t, "curl", "mkfifo"), closedPort(t)
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatal(err)
	}
	c.program("kubectl", `case "$*" in
*"get lease machine-controller "*) printf mcm-2 ;;
*"port-forward pod/mcm-2 `+port+`") exec sleep 60 ;;
*) echo "unexpected: $*" >&2; exit 1 ;;
esac`)
	c.program("curl", curl+` "$@" || { echo >refused; cat open; exit 7; }`)
	c.run("mkfifo refused open")
	server := &http.Server{ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintln(w, "stackit_leader 1")
		})}
	t.Cleanup(func() { _ = server.Close() })
	opened := make(chan error, 1)
	go func() {
		if _, err := os.ReadFile(filepath.Join(c.folder, "refused")); err != nil {
			opened <- err
			return
		}
		listener, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err == nil {
			go func() { _ = server.Serve(listener) }()
		}
		opened <- err
		_ = os.WriteFile(filepath.Join(c.folder, "open"), nil, 0o600)
	}()
	if got := c.run(forwarding(t, port)); got != "stackit_leader 1\n" {
		t.Errorf("it prints %q", got)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

func TestTheRunbooksDoNotWaitForAPodThatIsGone(t *testing.T) {
	c := newComputer(t, "curl")
	c.program("kubectl", `case "$*" in
*"get lease"*) printf mcm-1 ;;
*) echo 'Error from server (NotFound): pods "mcm-1" not found' >&2; exit 1 ;;
esac`)
	if got := c.run(forwarding(t, closedPort(t))); !strings.Contains(got, `pods "mcm-1" not found`) {
		t.Errorf("it prints %q", got)
	}
}

// TestTheRunbooksGetAShootsKubeconfig as a file that is only the user's, and beside the seed's, which stays the
// current one.
func TestTheRunbooksGetAShootsKubeconfig(t *testing.T) {
	c := newComputer(t, "jq", "base64")
	root, err := localenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	kubectl := filepath.Join(root, "bin", "kubectl")
	if _, err := os.Stat(kubectl); err != nil {
		t.Skip("kubectl is missing, run 'make bin/kubectl'")
	}
	config := func(name string) string {
		return `{apiVersion: v1, kind: Config, current-context: ` + name + `, contexts: [{name: ` + name +
			`, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: {server: "https://` + name +
			`"}}], users: [{name: u}]}`
	}
	if err := os.WriteFile(filepath.Join(c.folder, "seed.kubeconfig"), []byte(config("seed")), 0o600); err != nil {
		t.Fatal(err)
	}
	c.program("kubectl", `case "$*" in
"--kubeconfig garden.kubeconfig create -f - --raw `+
		`/apis/core.gardener.cloud/v1beta1/namespaces/garden-project/shoots/name/viewerkubeconfig")
  test "$(jq .spec.expirationSeconds)" = 3600 &&
    echo '{"status": {"kubeconfig": "`+base64.StdEncoding.EncodeToString([]byte(config("shoot--project--name")))+
		`"}}' ;;
*) exec `+kubectl+` "$@" ;;
esac`)
	got := c.run("export KUBECONFIG=$PWD/seed.kubeconfig\n" + blockWith(t, "viewerkubeconfig") +
		"kubectl config current-context && kubectl --context target config view -o jsonpath='{.contexts[*].name}'")
	if want := "Context \"shoot--project--name\" renamed to \"target\".\nseed\nseed target"; got != want {
		t.Errorf("it prints %q, want %q", got, want)
	}
	if file, err := os.Stat(filepath.Join(c.folder, "shoot.kubeconfig")); err != nil || file.Mode().Perm() != 0o600 {
		t.Errorf("the file of the shoot: %v, %v", file, err)
	}
}

// TestTheRunbooksShowWhatANetworkHolds: the servers of one together, also those that no cluster's label has.
func TestTheRunbooksShowWhatANetworkHolds(t *testing.T) {
	c := newComputer(t, "jq")
	c.program("kubectl", "echo '      kubernetes.io/cluster: b'")
	c.program("stackit", `cat <<END
[{"id": "1", "name": "n1", "createdAt": "2026-11-02", "nics": [{"networkId": "net-b"}],
  "labels": {"kubernetes.io/cluster": "b"}},
 {"id": "2", "name": "n2", "createdAt": "2026-11-03"},
 {"id": "3", "name": "n3", "createdAt": "2026-11-04", "nics": [{"networkId": "net-a"}],
  "labels": {"kubernetes.io/cluster": "a"}},
 {"id": "4", "name": "n4", "createdAt": "2026-11-01", "nics": [{"networkId": "net-b"}]}]
END`)
	got := c.run(blockWith(t, "sort_by"))
	want := "2\tn2\t2026-11-03\t\tnull\n3\tn3\t2026-11-04\tnet-a\t{\"kubernetes.io/cluster\":\"a\"}\n" +
		"1\tn1\t2026-11-02\tnet-b\t{\"kubernetes.io/cluster\":\"b\"}\n4\tn4\t2026-11-01\tnet-b\tnull\n" +
		"      kubernetes.io/cluster: b\n"
	if got != want {
		t.Errorf("it shows\n%s, want\n%s", got, want)
	}
}

// TestTheRunbooksFindASecondSidecar by the namespace it works for, however its flag is written.
func TestTheRunbooksFindASecondSidecar(t *testing.T) {
	c := newComputer(t, "jq")
	c.program("kubectl", `cat <<END
{"items": [
  {"metadata": {"namespace": "a", "name": "ours"},
   "spec": {"containers": [{"args": ["--v=2", "--namespace=\$(POD_NAMESPACE)"]}, {"name": "none"}]}},
  {"metadata": {"namespace": "b", "name": "with-its-own"},
   "spec": {"containers": [{"args": ["--namespace=\$(POD_NAMESPACE)"]}]}},
  {"metadata": {"namespace": "b", "name": "second"},
   "spec": {"containers": [{"command": ["./machine-controller", "--namespace=a"]}]}},
  {"metadata": {"namespace": "b", "name": "other"}, "spec": {"containers": [{"args": ["--namespace=ab"]}]}}
]}
END`)
	block := blockWith(t, "get pods -A -o json")
	got := c.run("NAMESPACE=a\n" + block[strings.Index(block, "kubectl get pods"):])
	if want := "a/ours\nb/second\n"; got != want {
		t.Errorf("it finds %q, want %q", got, want)
	}
}
