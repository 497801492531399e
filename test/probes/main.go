// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command probes asks the API of a real project questions to which no answer is published, and
// prints a row for each. It deletes every server that it has made. The README beside this file lists
// what it needs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/stackitcloud/stackit-sdk-go/core/oapierror"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/probes/project"
)

func main() {
	where, err := project.FromEnvironment(os.LookupEnv)
	config, configErr := spi.ConfigFromEnvironment(os.LookupEnv)
	if err := errors.Join(err, configErr); err != nil {
		fmt.Fprintf(os.Stderr, "Nothing was made:\n%v\n", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := newProbes(where, config).run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// label is the key of a label that the probes' servers have.
const label = "mcm-probe"

// probes are the questions, with what several of them look at.
type probes struct {
	project.Project
	config spi.Config
	api    iaas.DefaultAPI
	// name is the run's, and the value of the label.
	name string
	// poll is the time between two reads, patience how long the end of a wait takes at most.
	poll, patience time.Duration
	// idle are the times for which a connection stays unused before it is used again.
	idle []time.Duration
	seen recorder
	// first is the ID of the server that several probes look at.
	first string
}

func newProbes(where project.Project, config spi.Config) *probes {
	return &probes{
		Project: where, config: config, name: time.Now().UTC().Format("20060102-150405"),
		poll: time.Second, patience: 5 * time.Minute,
		first: missingID,
		idle:  []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute},
		seen:  recorder{next: http.DefaultTransport},
	}
}

// run asks all questions and deletes the servers. The error names what is left.
func (p *probes) run(ctx context.Context, out io.Writer) error {
	sessions := &spi.PluginSPIImpl{Config: p.config, Transport: &p.seen}
	session, err := sessions.Session(spi.Credentials{ProjectID: p.ID, ServiceAccountKey: p.Key})
	if err != nil {
		return err
	}
	p.api = session.API
	for _, probe := range p.all() {
		if ctx.Err() == nil {
			_, _ = fmt.Fprintf(out, "| %s | %s |\n", probe.question, probe.ask(ctx))
		}
	}
	// Also after Ctrl-C. A POST whose answer was lost may show late.
	left := []string{"not looked for"}
	cleaning, stop := context.WithTimeout(context.WithoutCancel(ctx), p.patience)
	defer stop()
	p.until(cleaning, func() bool {
		servers, err := p.list(cleaning, label+"="+p.name)
		if err != nil {
			return false
		}
		left = nil
		for i := range servers {
			left = append(left, servers[i].GetId())
			_ = p.delete(cleaning, servers[i].GetId()) // sent again until it is gone
		}
		return len(left) == 0
	})
	if len(left) > 0 {
		return fmt.Errorf("servers with the label %s=%s may be left: %s", label, p.name, strings.Join(left, ", "))
	}
	return ctx.Err()
}

// create makes a server, with a change to what all have in common.
func (p *probes) create(
	ctx context.Context, name string, change func(*iaas.CreateServerPayload),
) (*iaas.Server, error) {
	payload := iaas.CreateServerPayload{
		Name: "mcm-probe-" + p.name + "-" + name, MachineType: p.MachineType, Labels: map[string]any{label: p.name},
		Networking: iaas.CreateServerPayloadAllOfNetworking{
			CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: &p.NetworkID},
		},
		BootVolume: &iaas.BootVolume{
			Size: new(int64(20)), DeleteOnTermination: new(true),
			Source: iaas.NewBootVolumeSource(p.ImageID, "image"),
		},
	}
	change(&payload)
	return p.api.CreateServer(ctx, p.ID, p.Region).CreateServerPayload(payload).Execute()
}

// accepts tells whether the API takes a server, which is deleted at once.
func (p *probes) accepts(ctx context.Context, name string, change func(*iaas.CreateServerPayload)) string {
	made, err := p.create(ctx, name, change)
	if err == nil {
		_ = p.delete(ctx, made.GetId()) // sent again at the end
	}
	return outcome(err)
}

func (p *probes) get(ctx context.Context, id string) (*iaas.Server, error) {
	return p.api.GetServer(ctx, p.ID, p.Region, id).Details(true).Execute()
}

func (p *probes) list(ctx context.Context, selector string) ([]iaas.Server, error) {
	request := p.api.ListServers(ctx, p.ID, p.Region)
	if selector != "" {
		request = request.LabelSelector(selector)
	}
	list, err := request.Execute()
	return list.GetItems(), err
}

func (p *probes) delete(ctx context.Context, id string) error {
	return p.api.DeleteServer(ctx, p.ID, p.Region, id).Execute()
}

// until polls until done, and returns after how long that was. It gives up after patience.
func (p *probes) until(ctx context.Context, done func() bool) string {
	start := time.Now()
	for !done() {
		if time.Since(start) > p.patience || ctx.Err() != nil {
			return "never"
		}
		<-time.After(p.poll)
	}
	return fmt.Sprintf("after %.1f s", time.Since(start).Seconds())
}

// outcome describes the answer to a request in one line.
func outcome(err error) string {
	text := "accepted"
	var answer *oapierror.GenericOpenAPIError
	switch {
	case errors.As(err, &answer):
		text = fmt.Sprintf("%d %s", answer.StatusCode, answer.Body)
	case err != nil:
		text = "no answer: " + err.Error()
	}
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
	return text[:min(len(text), 300)]
}

// recorder notes the headers of the API's last answer, and the access token.
type recorder struct {
	next   http.RoundTripper
	header http.Header
	token  string
}

// RoundTrip implements http.RoundTripper. The probes make one call at a time.
func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if token, ok := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer "); ok && err == nil {
		r.token, r.header = token, response.Header
	}
	return response, err
}
