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
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
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
	// hangUp drops all connections.
	hangUp func()
}

func newConsoleMock() *consoleMock {
	cloud := iaasmock.New(iaasmock.WithoutAuthentication(), iaasmock.WithBootDuration(0), iaasmock.WithDeleteDuration(0))
	api := httptest.NewServer(cloud)
	// Close alone would wait for the stream of a page.
	DeferCleanup(func() { api.CloseClientConnections(); api.Close() })
	return &consoleMock{cloud: cloud, url: api.URL, hangUp: api.CloseClientConnections}
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
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		fmt.Sprintf("%s/v2/projects/%s/regions/%s/servers", m.url, iaasmock.DefaultProjectID, iaasmock.DefaultRegion), bytes.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	var made struct{ ID string }
	Expect(json.NewDecoder(response.Body).Decode(&made)).To(Succeed())
	Expect(response.StatusCode).To(Equal(http.StatusCreated))
	return made.ID
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
	const callIt = (node) => [node.tagName, node.id, node.dataset.preset, node.dataset.id, node.textContent.trim().slice(0, 20)].filter(Boolean).join(' ');
	const all = () => [...document.querySelectorAll('a, button, input, select, summary, [tabindex="0"]')]
		.filter((node) => !node.disabled && !node.closest('[inert]') && node.checkVisibility({ visibilityProperty: true }));
`

var _ = Describe("The page of the mock's console", func() {
	It("is used with the keyboard alone", func(ctx SpecContext) {
		m := newConsoleMock()
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
				return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 && box.bottom > 0 && box.top < innerHeight;
			})()`)).To(BeTrue(), "the focus shows on %s", next)
		}

		focusOn := func(expression string) {
			GinkgoHelper()
			Eventually(ctx, func() bool { return read[bool](page, expression) }).WithTimeout(actionTimeout).Should(BeTrue(), expression)
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
	}, SpecTimeout(2*time.Minute))

	It("has a name for everything one can operate", func(ctx SpecContext) {
		m := newConsoleMock()
		id := m.add(ctx, "server-0", "small")
		page := m.open(ctx, 1)
		page.click(rowOf(id))
		tree := ask(page, func(ctx context.Context, tab *chromedp.Target) (accessibility.GetFullAXTreeResult, error) {
			return cdp.Call(ctx, tab, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		})
		operable := map[string]bool{`"button"`: true, `"textbox"`: true, `"searchbox"`: true, `"spinbutton"`: true, `"combobox"`: true, `"link"`: true, `"region"`: true}
		seen := 0
		for _, node := range tree.Nodes {
			if node.Ignored || node.Role == nil || !operable[string(node.Role.Value)] {
				continue
			}
			seen++
			Expect(node.Name).NotTo(BeNil())
			Expect(string(node.Name.Value)).NotTo(BeElementOf("", `""`), "a nameless %s", node.Role.Value)
		}
		Expect(seen).To(BeNumerically(">", 20))
	}, SpecTimeout(2*time.Minute))

	It("shows what strangers wrote as text, and acts on servers", func(ctx SpecContext) {
		m := newConsoleMock()
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
		Expect(read[bool](page, `document.title === 'owned' || document.querySelector('img, #injected, main script') !== null`)).To(BeFalse())

		page.click("#remove-server")
		page.expectRows(ctx, actionTimeout, HaveLen(1))
		page.expectText(ctx, "#details-status", Equal("GONE"))
		page.click("#details-close")
		page.click(rowOf(other))
		page.click("#stop-server")
		page.expectText(ctx, "#details-status", Equal(iaasmock.StatusInactive))
		Expect(m.cloud.Servers()).To(ConsistOf(HaveField("ID", other)))
	}, SpecTimeout(2*time.Minute))

	It("groups servers by the labels one asks for", func(ctx SpecContext) {
		m := newConsoleMock()
		for i, class := range []string{"large", "small", "small"} {
			m.add(ctx, fmt.Sprintf("server-%d", i), class)
		}
		page := m.open(ctx, 3)
		groups := func() []string {
			return read[[]string](page, `[...document.querySelectorAll('#groups .group')].map((group) =>`+
				` group.querySelector('h4').textContent + ' ' + group.querySelectorAll('.row').length)`)
		}
		Expect(groups()).To(Equal([]string{clusterName + "/large 1", clusterName + "/small 2"}))
		page.do(chromedp.SetValue(chromedp.CSS("#group-by"), "team, */cluster"),
			chromedp.Evaluate[chromedp.Void](`document.querySelector('#group-by').dispatchEvent(new Event('change'))`))
		Expect(groups()).To(Equal([]string{"no label/" + clusterName + " 3"}))
		page.do(chromedp.Reload())
		page.expectRows(ctx, actionTimeout, HaveLen(3))
		Expect(groups()).To(Equal([]string{"no label/" + clusterName + " 3"}), "the address remembers")
	}, SpecTimeout(2*time.Minute))

	It("finds back to a mock that was away", func(ctx SpecContext) {
		m := newConsoleMock()
		gone := m.add(ctx, "server-0", "small")
		m.add(ctx, "server-1", "small")
		page := m.open(ctx, 2)
		m.hangUp()
		page.expectText(ctx, "#connection", ContainSubstring("lost"))
		Expect(m.cloud.RemoveServer(gone)).To(Succeed())
		page.expectText(ctx, "#connection", Equal("live"))
		page.expectRows(ctx, actionTimeout, HaveLen(1))
		page.forgive() // the browser complains about the connection
	}, SpecTimeout(2*time.Minute))

	It("stays usable with 2000 servers", func(ctx SpecContext) {
		const count = 2000
		m := newConsoleMock()
		var last string
		for i := range count {
			last = m.add(ctx, fmt.Sprintf("server-%04d", i), fmt.Sprintf("class-%d", i%4))
		}
		page := m.open(ctx, count)
		// Only what has changed is drawn: the others stay the nodes they are.
		read[bool](page, `[...document.querySelectorAll('.row')].every((row) => row.drawnOnce = true)`)
		Expect(m.cloud.SetServerStatus(last, iaasmock.StatusError, "no luck")).To(Succeed())
		page.expectText(ctx, rowOf(last), ContainSubstring("no luck"))
		Expect(read[bool](page, `[...document.querySelectorAll('.row')].every((row) => row.drawnOnce)`)).To(BeTrue())
		page.do(chromedp.SetValue(chromedp.CSS("#find"), "class-1"))
		took := read[float64](page, `(() => {
			const start = performance.now();
			document.querySelector('#find').dispatchEvent(new Event('input', { bubbles: true }));
			document.body.getBoundingClientRect();
			return performance.now() - start;
		})()`)
		AddReportEntry(fmt.Sprintf("finding among %d servers took %.0f ms", count, took))
		Expect(page.rows()).To(HaveLen(count / 4))
		Expect(took).To(BeNumerically("<", 1000), "milliseconds to find")
		page.click(rowOf(read[string](page, `[...document.querySelectorAll('.row')].find((row) => row.checkVisibility()).dataset.id`)))
		page.expectText(ctx, "#details-body", ContainSubstring(iaasmock.DefaultProjectID))
	}, SpecTimeout(3*time.Minute))
})
