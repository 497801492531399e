// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// actionTimeout is for one action in the browser, which also waits until the
// element it is about is there.
const actionTimeout = 20 * time.Second

// browser is a tab of a headless Chromium with a page of its own.
type browser struct {
	ctx context.Context

	mu sync.Mutex
	// complaints are what the page's console would show in red.
	complaints []string
}

// openBrowser opens a page. It closes with the spec, and must not have
// complained by then. Where there is no Chromium the spec is skipped.
func openBrowser(url string) *browser {
	GinkgoHelper()
	allocator, end := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(findChromium()), chromedp.UserDataDir(profileFolder()),
		chromedp.Headless, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		// Chromium refuses to sandbox itself as root, which is who CI runs as.
		chromedp.NoSandbox,
		// Nothing of it leaves this computer.
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		// Containers have little shared memory.
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.WindowSize(1440, 900))
	DeferCleanup(end)
	ctx, _ := chromedp.NewContext(allocator)
	DeferCleanup(func() error { return chromedp.Cancel(ctx) }) // returns when Chromium has ended
	b := &browser{ctx: ctx}
	// What comes first starts Chromium, and its context must outlive the call.
	Expect(chromedp.Listen(ctx, b.note)).To(Succeed(), "starting Chromium")
	b.do(chromedp.Navigate(url))
	DeferCleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		Expect(b.complaints).To(BeEmpty(), "the page complained")
	})
	return b
}

// profileFolder returns an empty folder for what Chromium keeps. Its processes may
// write there a moment after the first of them has ended.
func profileFolder() string {
	GinkgoHelper()
	folder, err := os.MkdirTemp("", "console-profile-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Eventually(os.RemoveAll).WithArguments(folder).WithTimeout(actionTimeout).WithPolling(poll).Should(Succeed())
	})
	return folder
}

// findChromium skips the spec if there is none.
func findChromium() string {
	GinkgoHelper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Skip("no Chromium here: install the package chromium to test the console")
	return ""
}

// forgive forgets what the page has complained about so far.
func (b *browser) forgive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = nil
}

// note collects errors of the page's script and refusals by its policy.
func (b *browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		failure := chromedp.ExceptionError{ExceptionDetails: event.ExceptionDetails}
		b.complaints = append(b.complaints, failure.Error())
	case *log.EventEntryAdded:
		if event.Entry.Level == log.EntryLevelError {
			b.complaints = append(b.complaints, fmt.Sprintf("%s %s", event.Entry.Text, event.Entry.URL))
		}
	}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	GinkgoHelper()
	ask(b, chromedp.Steps(steps...))
}

// ask does an action that has an answer.
func ask[T any](b *browser, action chromedp.Action[T]) T {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(b.ctx, actionTimeout)
	defer cancel()
	answer, err := chromedp.Run(ctx, action)
	Expect(err).NotTo(HaveOccurred())
	return answer
}

// click clicks as a mouse does: on what is in sight.
func (b *browser) click(selector string) {
	GinkgoHelper()
	b.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// press types a key, such as kb.Tab.
func (b *browser) press(key string) {
	GinkgoHelper()
	b.do(chromedp.KeyEvent(key))
}

// read evaluates an expression in the page.
func read[T any](b *browser, expression string) T {
	GinkgoHelper()
	return ask(b, chromedp.Evaluate[T](expression))
}

// text is what an element shows.
func (b *browser) text(selector string) string {
	GinkgoHelper()
	return read[string](b, fmt.Sprintf(`document.querySelector(%q)?.textContent ?? ""`, selector))
}

// expectText waits until an element shows something.
func (b *browser) expectText(ctx context.Context, selector string, matcher OmegaMatcher) {
	GinkgoHelper()
	Eventually(ctx, b.text).WithArguments(selector).WithTimeout(actionTimeout).WithPolling(poll).Should(matcher)
}

// expectRows waits until the states of the servers that the page shows fit.
func (b *browser) expectRows(ctx context.Context, timeout time.Duration, matcher OmegaMatcher) {
	GinkgoHelper()
	Eventually(ctx, b.rows).WithTimeout(timeout).WithPolling(poll).Should(matcher)
}

// rows are the states of the servers that the page shows, in its order.
func (b *browser) rows() []string {
	GinkgoHelper()
	return read[[]string](b, `[...document.querySelectorAll('#groups .row')].filter((row) => row.checkVisibility())`+
		`.map((row) => row.querySelector('.status').textContent)`)
}
