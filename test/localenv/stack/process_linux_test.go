// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// asParent makes the test binary start a child, name it and wait to be killed.
const asParent = "LOCALENV_TEST_PARENT"

func TestChildrenDieWithAParentThatIsKilled(t *testing.T) {
	if os.Getenv(asParent) != "" {
		beParent(t)
	}
	g := NewWithT(t)
	parent := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	parent.Env = append(os.Environ(), asParent+"="+t.TempDir())
	out, err := parent.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parent.Start()).To(Succeed())
	line, err := bufio.NewReader(out).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	child, err := strconv.Atoi(strings.TrimSpace(line))
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(syscall.Kill(child, 0)).To(Succeed(), "the child outlives the thread that asked for it")
	g.Expect(parent.Process.Kill()).To(Succeed())
	_ = parent.Wait()
	// Whoever inherits the orphan may take a while to bury it: a zombie is dead.
	g.Eventually(func() bool { return alive(child) }).WithTimeout(time.Minute).Should(BeFalse())
}

func beParent(t *testing.T) {
	started := make(chan int)
	go func() {
		// This thread ends with the goroutine, and must not take the child along.
		runtime.LockOSThread()
		p, err := spawn(PartEtcd, shell("exec sleep 60"), filepath.Join(os.Getenv(asParent), "log"))
		if err != nil {
			panic(err)
		}
		started <- p.cmd.Process.Pid
	}()
	_, _ = fmt.Fprintln(os.Stdout, <-started)
	select {
	case <-t.Context().Done():
	case <-time.After(time.Minute):
	}
}

func alive(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(status), ") ")
	return !strings.HasPrefix(state, "Z")
}
