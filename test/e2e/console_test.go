// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// consoleMock is a mock with nothing around it, and its page.
type consoleMock struct {
	cloud *iaasmock.Cloud
	url   string
	// away makes the mock answer no one.
	away atomic.Bool
}

func newConsoleMock(takes time.Duration) *consoleMock {
	cloud := iaasmock.New(iaasmock.WithoutAuthentication(),
		iaasmock.WithBootDuration(takes), iaasmock.WithDeleteDuration(takes))
	m := &consoleMock{cloud: cloud}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.away.Load() {
			panic(http.ErrAbortHandler)
		}
		cloud.ServeHTTP(w, r)
	}))
	DeferCleanup(func() { api.CloseClientConnections(); api.Close() })
	m.url = api.URL
	return m
}

// add makes a server of a machine class and returns its ID.
func (m *consoleMock) add(ctx context.Context, name, class string) string {
	GinkgoHelper()
	body, err := json.Marshal(map[string]any{
		"name": name, "machineType": iaasmock.DefaultMachineType, "imageId": iaasmock.DefaultImageID,
		"networking": map[string]any{"networkId": iaasmock.DefaultNetworkID},
		"labels":     map[string]any{clusterLabel: clusterName, "kubernetes.io/machineclass": class},
	})
	Expect(err).NotTo(HaveOccurred())
	response := m.call(ctx, http.MethodPost, "", body)
	defer func() { _ = response.Body.Close() }()
	var made struct{ ID string }
	Expect(json.NewDecoder(response.Body).Decode(&made)).To(Succeed())
	Expect(response.StatusCode).To(Equal(http.StatusCreated))
	return made.ID
}

// call calls the API for servers.
func (m *consoleMock) call(ctx context.Context, method, path string, body []byte) *http.Response {
	GinkgoHelper()
	url := fmt.Sprintf("%s/v2/projects/%s/regions/%s/servers%s",
		m.url, iaasmock.DefaultProjectID, iaasmock.DefaultRegion, path)
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	return response
}

// open opens the page and waits until it is live.
func (m *consoleMock) open(ctx context.Context, servers int) *browser {
	GinkgoHelper()
	page := openBrowser(m.url)
	page.expectText(ctx, "#connection", Equal("live"))
	page.expectRows(ctx, actionTimeout, HaveLen(servers))
	page.expectText(ctx, "#presets", Not(BeEmpty()))
	return page
}

func rowOf(id string) string { return fmt.Sprintf(`.row[data-id=%q]`, id) }

// inReach is what the keyboard has to reach, in the order of the document, each
// told by what a person would call it.
const inReach = `
	const callIt = (node) => [node.tagName, node.id, node.dataset.preset, node.dataset.id,
		node.textContent.trim().slice(0, 20)].filter(Boolean).join(' ');
	const all = () => [...document.querySelectorAll('a, button, input, select, summary, [tabindex="0"]')]
		.filter((node) => !node.disabled && !node.closest('[inert]') && node.checkVisibility({ visibilityProperty: true }));
`

var _ = Describe("The mock's console", short, func() {
	It("shows servers come and go, in groups, and breaks and mends the API at a click", journey, func(ctx SpecContext) {
		m := newConsoleMock(5 * time.Second)
		page := m.open(ctx, 0)
		id := m.add(ctx, "server-0", "small")
		page.expectRows(ctx, actionTimeout, ConsistOf(iaasmock.StatusCreating))
		page.expectRows(ctx, actionTimeout, ConsistOf(iaasmock.StatusActive))
		m.add(ctx, "server-1", "large")
		page.expectRows(ctx, actionTimeout, ConsistOf(iaasmock.StatusActive, iaasmock.StatusActive))

		By("grouping them")
		groups := func() []string {
			return read[[]string](page, `[...document.querySelectorAll('#groups .group')].map((group) =>`+
				` group.querySelector('h4').textContent + ' ' + group.querySelectorAll('.row').length)`)
		}
		Expect(groups()).To(Equal([]string{clusterName + "/large 1", clusterName + "/small 1"}))
		page.do(chromedp.SetValue(chromedp.CSS("#group-by"), "team, */cluster"),
			chromedp.Evaluate[chromedp.Void](`document.querySelector('#group-by').dispatchEvent(new Event('change'))`))
		Expect(groups()).To(Equal([]string{"no label/" + clusterName + " 2"}))
		page.do(chromedp.Reload())
		page.expectRows(ctx, actionTimeout, HaveLen(2))
		Expect(groups()).To(Equal([]string{"no label/" + clusterName + " 2"}), "the address remembers")

		By("deleting one")
		Expect(m.call(ctx, http.MethodDelete, "/"+id, nil).Body.Close()).To(Succeed())
		page.expectRows(ctx, actionTimeout, ConsistOf(iaasmock.StatusActive, iaasmock.StatusDeleting))
		page.expectRows(ctx, actionTimeout, ConsistOf(iaasmock.StatusActive))

		By("running out of capacity")
		page.click(`[data-preset="no-capacity"]`)
		Eventually(m.cloud.Faults).WithTimeout(actionTimeout).Should(HaveLen(1))
		page.expectText(ctx, "#active-faults", ContainSubstring("no-capacity"))
		m.add(ctx, "server-2", "small")
		page.expectRows(ctx, actionTimeout, ConsistOf(iaasmock.StatusActive, iaasmock.StatusError))
		page.expectText(ctx, "#active-faults", MatchRegexp(`[1-9]\d* hits?`))

		By("mending it")
		page.click("#clear-faults")
		Eventually(m.cloud.Faults).WithTimeout(actionTimeout).Should(BeEmpty())
		page.expectText(ctx, "#active-faults", BeEmpty())
	}, SpecTimeout(4*time.Minute))

	It("is used with the keyboard alone, and has a name for everything one can operate", func(ctx SpecContext) {
		m := newConsoleMock(0)
		for i := range 3 {
			m.add(ctx, fmt.Sprintf("server-%d", i), "small")
		}
		page := m.open(ctx, 3)
		wanted := read[[]string](page, `(() => {`+inReach+`return all().map(callIt); })()`)
		Expect(len(wanted)).To(BeNumerically(">", 20))
		for _, next := range wanted {
			page.press(kb.Tab)
			Expect(read[string](page, `(() => {`+inReach+`return callIt(document.activeElement); })()`)).To(Equal(next))
			Expect(read[bool](page, `(() => {
				const style = getComputedStyle(document.activeElement), box = document.activeElement.getBoundingClientRect();
				return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 &&
					box.bottom > 0 && box.top < innerHeight;
			})()`)).To(BeTrue(), "the focus shows on %s", next)
		}

		focusOn := func(expression string) {
			GinkgoHelper()
			holds := func() bool { return read[bool](page, expression) }
			Eventually(ctx, holds).WithTimeout(actionTimeout).Should(BeTrue(), expression)
		}
		page.do(chromedp.Focus(chromedp.CSS(".row")))
		page.press(kb.ArrowDown)
		focusOn(`document.activeElement.dataset.name === 'server-1'`)
		page.press(kb.Enter)
		focusOn(`document.activeElement.id === 'details-title' && !document.querySelector('#details').hidden`)
		page.press(kb.Tab)
		focusOn(`document.activeElement.id === 'details-close'`)
		page.press(kb.Escape)
		focusOn(`document.activeElement.dataset.name === 'server-1' && document.querySelector('#details').hidden`)

		page.press(kb.Enter) // the details, too
		focusOn(`!document.querySelector('#details').hidden`)
		tree := ask(page, func(ctx context.Context, tab *chromedp.Target) (accessibility.GetFullAXTreeResult, error) {
			return cdp.Call(ctx, tab, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		})
		operable := []string{`"button"`, `"textbox"`, `"searchbox"`, `"spinbutton"`, `"combobox"`, `"link"`, `"region"`}
		seen := 0
		for _, node := range tree.Nodes {
			if node.Ignored || node.Role == nil || !slices.Contains(operable, string(node.Role.Value)) {
				continue
			}
			seen++
			Expect(node.Name).NotTo(BeNil())
			Expect(string(node.Name.Value)).NotTo(BeElementOf("", `""`), "a nameless %s", node.Role.Value)
		}
		Expect(seen).To(BeNumerically(">", 20))
	}, SpecTimeout(4*time.Minute))

	It("shows what strangers wrote as text, and acts on servers", func(ctx SpecContext) {
		m := newConsoleMock(0)
		const evil = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`
		id, other := m.add(ctx, "server-0", `<b id=injected>small</b>`), m.add(ctx, "server-1", "small")
		page := m.open(ctx, 2)
		page.click(rowOf(id))
		page.do(chromedp.SetValue(chromedp.CSS("#fail-message"), evil))
		page.click(`#details-actions [type="submit"]`)
		page.expectText(ctx, rowOf(id), And(ContainSubstring(iaasmock.StatusError), ContainSubstring(evil)))
		page.expectText(ctx, "#details-body", ContainSubstring(evil))
		Expect(m.cloud.Servers()).To(ContainElement(And(
			HaveField("ID", id), HaveField("Status", iaasmock.StatusError), HaveField("ErrorMessage", evil))))
		Expect(page.text("#groups h4")).To(ContainSubstring("<b id=injected>"))
		const injected = `document.title === 'owned' || document.querySelector('img, #injected, main script') !== null`
		Expect(read[bool](page, injected)).To(BeFalse())

		page.click("#remove-server")
		page.expectRows(ctx, actionTimeout, HaveLen(1))
		page.expectText(ctx, "#details-status", Equal("GONE"))
		page.click("#details-close")
		page.click(rowOf(other))
		page.click("#stop-server")
		page.expectText(ctx, "#details-status", Equal(iaasmock.StatusInactive))
		Expect(m.cloud.Servers()).To(ConsistOf(HaveField("ID", other)))
	}, SpecTimeout(4*time.Minute))

	It("fits on a phone, with the longest names", func(ctx SpecContext) {
		m := newConsoleMock(0)
		long := strings.Repeat("name", 15)
		id := m.add(ctx, long, long)
		page := m.open(ctx, 1)
		page.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
		// What sticks out, or has text that is cut off.
		tooWide := func(within string) []string {
			GinkgoHelper()
			return read[[]string](page, `[...document.querySelectorAll('`+within+`')].filter((node) => node.checkVisibility() &&
				node.tagName !== 'INPUT' && (node.getBoundingClientRect().right > 360 ||
					node.clientWidth > 0 && node.scrollWidth > node.clientWidth))
				.map((node) => node.tagName + ' ' + node.id + ' ' + node.className + ' ' + node.textContent.slice(0, 30))`)
		}
		Expect(tooWide("body, .top *, .faults *, .servers *")).To(BeEmpty())
		page.click(rowOf(id))
		page.do(chromedp.SetValue(chromedp.CSS("#fail-message"), strings.Repeat("x", 200)))
		page.click(`#details-actions [type="submit"]`)
		page.expectText(ctx, "#details-status", Equal(iaasmock.StatusError))
		page.expectText(ctx, "#details-body", ContainSubstring(id))
		Expect(tooWide("body, #details, #details *")).To(BeEmpty())
	}, SpecTimeout(4*time.Minute))

	It("finds back to a mock that was away", func(ctx SpecContext) {
		m := newConsoleMock(0)
		gone := m.add(ctx, "server-0", "small")
		m.add(ctx, "server-1", "small")
		page := m.open(ctx, 2)
		m.away.Store(true)
		page.expectText(ctx, "#connection", ContainSubstring("lost"))
		Expect(m.cloud.RemoveServer(gone)).To(Succeed())
		m.away.Store(false)
		page.expectText(ctx, "#connection", Equal("live"))
		page.expectRows(ctx, actionTimeout, HaveLen(1))
		page.forgive() // the browser complains about the connection
	}, SpecTimeout(4*time.Minute))
})

// actionTimeout is for one action in the browser, which also waits until the
// element it is about is there.
const actionTimeout = time.Minute

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
