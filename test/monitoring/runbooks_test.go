// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"context"
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
)

// runbookBlocks are the shell commands of the runbooks, in their order.
func runbookBlocks(t *testing.T) []string {
	t.Helper()
	var blocks []string
	for _, match := range regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$").FindAllStringSubmatch(kubernetes.Runbooks, -1) {
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
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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

// TestTheRunbooksFindASecondSidecar by the namespace it works for, however its flag is written.
func TestTheRunbooksFindASecondSidecar(t *testing.T) {
	c := newComputer(t, "jq")
	c.program("kubectl", `cat <<END
{"items": [
  {"metadata": {"namespace": "a", "name": "ours"}, "spec": {"containers": [{"args": ["--v=2", "--namespace=\$(POD_NAMESPACE)"]}, {"name": "none"}]}},
  {"metadata": {"namespace": "b", "name": "with-its-own"}, "spec": {"containers": [{"args": ["--namespace=\$(POD_NAMESPACE)"]}]}},
  {"metadata": {"namespace": "b", "name": "second"}, "spec": {"containers": [{"command": ["./machine-controller", "--namespace=a"]}]}},
  {"metadata": {"namespace": "b", "name": "other"}, "spec": {"containers": [{"args": ["--namespace=ab"]}]}}
]}
END`)
	block := blockWith(t, "get pods -A -o json")
	got := c.run("NAMESPACE=a\n" + block[strings.Index(block, "kubectl get pods"):])
	if want := "a/ours\nb/second\n"; got != want {
		t.Errorf("it finds %q, want %q", got, want)
	}
}
