// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"time"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
)

const (
	// probeName follows the run's name in the names of the probes' servers.
	probeName = "probe-"
	// maxProbeServers is how many servers the probes make at most, one after the other.
	maxProbeServers = 7
	// missingID is a valid ID that no resource has.
	missingID = "00000000-0000-4000-8000-00000000dead"
	// missingRegion is a valid name of a region that does not exist.
	missingRegion = "eu99"
	// notTold begins the row of a probe that could not tell.
	notTold = "not told: "
)

// probes is the second half of a run: questions about the API to which no answer is published.
type probes struct {
	*run

	// first is the server on which several probes look; nil before it is made.
	first *iaas.Server
	// posted is when the answer to the last POST came.
	posted time.Time
	// deleted is when the DELETE of the first server was accepted; zero if it was not.
	deleted time.Time
}

// probe is one open question.
type probe struct {
	question string
	// ask returns what the API has shown, or why it could not tell.
	ask func(context.Context) string
}

func (p *probes) all() []probe {
	return []probe{
		{"GET of a server that never was", p.missingServer},
		{"Claims of an access token", p.tokenClaims},
		{"List in a region that does not exist", p.unknownRegion},
		{"Time until a list by selector shows a new server", p.selector},
		{"Labels in lists without details", p.labelsInLists},
		{"DELETE of a server that is CREATING", p.deleteCreating},
		{"GET of a server after its DELETE", p.getDeleted},
		{"POST above the quota", p.aboveQuota},
		{"userData of 64 KiB", p.longUserData},
		{"A server with 65 labels", p.manyLabels},
		{"A server with imageId alone", p.imageAlone},
		{"The boot volume of a server in ERROR", p.errorVolume},
		{"Idle connections", p.idleConnections},
		{"Headers of answers", p.answerHeaders},
	}
}

// askAll asks each question, for as long as one step may take, and deletes what the probes have made.
func (p *probes) askAll(ctx context.Context) {
	for _, probe := range p.all() {
		asking, stop := withLimit(ctx, p.patience)
		seen := probe.ask(asking)
		stop()
		if ctx.Err() != nil {
			seen = notTold + "the run was interrupted or out of time"
		}
		p.note(probe.question, "%s", seen)
	}
	// Of a POST without an answer the ID is not known, and a DELETE may have been refused.
	cleaning, stop := withLimit(ctx, p.patience)
	defer stop()
	_ = p.await(cleaning, p.patience, func(ctx context.Context) (string, bool) {
		v, err := p.look(ctx)
		if err != nil {
			return describe(err), false
		}
		left := slices.DeleteFunc(v.servers, func(server iaas.Server) bool {
			return !strings.HasPrefix(server.GetName(), namesBegin(p.name)+probeName)
		})
		for i := range left {
			_ = p.project.delete(ctx, serverThing(&left[i])) // asked again until it is gone
		}
		return "", len(left) == 0
	})
}

// outcome describes the answer to a request: accepted, the status and text of a refusal, or why there is
// none that tells.
func outcome(err error) string {
	switch {
	case err == nil:
		return "accepted"
	case isRefusal(err):
		return "refused: " + describe(err)
	default:
		return notTold + describe(err)
	}
}

// create makes a server of a probe, with a change to what all have in common.
func (p *probes) create(
	ctx context.Context, name string, change func(*iaas.CreateServerPayload),
) (*iaas.Server, error) {
	size, isDeleted := int64(bootVolumeSize), true
	payload := iaas.CreateServerPayload{
		Name: namesBegin(p.name) + probeName + name, MachineType: p.settings.machineType,
		Labels: map[string]any{probeLabel: p.name},
		Networking: iaas.CreateServerPayloadAllOfNetworking{
			CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: &p.network},
		},
		BootVolume: &iaas.BootVolume{
			Size: &size, DeleteOnTermination: &isDeleted, Source: iaas.NewBootVolumeSource(p.settings.imageID, "image"),
		},
	}
	if p.settings.zone != "" {
		payload.AvailabilityZone = &p.settings.zone
	}
	if change != nil {
		change(&payload)
	}
	made, err := p.API.CreateServer(ctx, p.ProjectID, p.region).CreateServerPayload(payload).Execute()
	if err != nil {
		return nil, err
	}
	if made.GetName() != payload.Name || made.GetId() == "" {
		return nil, errors.New("the answer to the POST shows no ID, or a server with another name")
	}
	p.posted = time.Now()
	p.add(serverThing(made))
	if shown, err := p.server(ctx, made.GetId()); err == nil {
		p.claims(shown) // its boot volume and NICs are noted
	}
	return made, nil
}

// createAndDelete asks whether the API takes a server. It is deleted at once.
func (p *probes) createAndDelete(ctx context.Context, name string, change func(*iaas.CreateServerPayload)) string {
	made, err := p.create(ctx, name, change)
	if err == nil {
		_ = p.project.delete(ctx, serverThing(made)) // asked again at the end
	}
	return outcome(err)
}

// until polls until a read shows something, and returns between which seconds after start it happened.
func (p *probes) until(
	ctx context.Context, start time.Time, read func(context.Context) (happened bool, err error),
) (string, error) {
	var from time.Duration
	var problem error
	for {
		began := time.Since(start)
		happened, err := read(ctx)
		switch {
		case err != nil:
			problem = err
		case happened:
			return fmt.Sprintf("%.1f to %.1f s", max(from, 0).Seconds(), time.Since(start).Seconds()), nil
		default:
			from = began
		}
		if err := pause(ctx, min(p.poll, time.Second)); err != nil {
			return "", errors.Join(err, problem)
		}
	}
}

func (p *probes) missingServer(ctx context.Context) string {
	_, err := p.server(ctx, missingID)
	return outcome(err)
}

func (p *probes) tokenClaims(context.Context) string {
	if claims := p.exchanges.claimRow(); claims != "" {
		return claims
	}
	return notTold + "no request had a token"
}

func (p *probes) unknownRegion(ctx context.Context) string {
	elsewhere := &project{Session: p.Session, region: missingRegion}
	servers, err := elsewhere.servers(ctx, "", false)
	if err == nil {
		return fmt.Sprintf("accepted, with %d servers", len(servers))
	}
	return outcome(err)
}

func (p *probes) selector(ctx context.Context) string {
	made, err := p.create(ctx, "first", nil)
	if err != nil {
		return notTold + "its POST: " + outcome(err)
	}
	p.first = made
	span, err := p.until(ctx, p.posted, func(ctx context.Context) (bool, error) {
		found, _, err := p.listed(ctx, probeLabel+"="+p.name)
		return found, err
	})
	if err != nil {
		return notTold + describe(err)
	}
	return span + " after the answer to its POST"
}

// listed reports whether the list by the selector shows the first server, and with how many labels.
func (p *probes) listed(ctx context.Context, selector string) (found bool, labels int, err error) {
	servers, err := p.servers(ctx, selector, false)
	for i := range servers {
		if servers[i].GetId() == p.first.GetId() {
			return true, len(servers[i].GetLabels()), nil
		}
	}
	return false, 0, err
}

// errNoServer means that a probe has no server to look at.
const errNoServer = notTold + "the server could not be created"

func (p *probes) labelsInLists(ctx context.Context) string {
	if p.first == nil {
		return errNoServer
	}
	found, labels, err := p.listed(ctx, "")
	switch {
	case err != nil:
		return notTold + describe(err)
	case !found:
		return notTold + "the list does not show the server"
	default:
		return fmt.Sprintf("%d shown, 1 was sent", labels)
	}
}

func (p *probes) deleteCreating(ctx context.Context) string {
	if p.first == nil {
		return errNoServer
	}
	server, err := p.server(ctx, p.first.GetId())
	if err != nil {
		return notTold + describe(err)
	}
	err = p.project.delete(ctx, serverThing(p.first))
	if err == nil {
		p.deleted = time.Now()
	}
	if server.GetStatus() != statusCreating {
		return notTold + "the server was " + server.GetStatus() + " before the DELETE"
	}
	return outcome(err)
}

// getDeleted reads the server a second after its DELETE and until it is gone. A run is over before an hour is:
// its last lines have the command for that.
func (p *probes) getDeleted(ctx context.Context) string {
	if p.deleted.IsZero() {
		return notTold + "no DELETE of the server was accepted"
	}
	if err := pause(ctx, time.Until(p.deleted.Add(time.Second))); err != nil {
		return notTold + describe(err)
	}
	seen := "after 1 s: "
	server, err := p.server(ctx, p.first.GetId())
	if err == nil {
		seen += server.GetStatus()
	} else {
		seen += outcome(err)
	}
	var last error
	span, err := p.until(ctx, p.deleted, func(ctx context.Context) (bool, error) {
		server, err := p.server(ctx, p.first.GetId())
		if isRefusal(err) {
			last = err
			return true, nil
		}
		return err == nil && server.GetStatus() == statusDeleted, err
	})
	if err != nil {
		return seen + "; gone: " + notTold + describe(err)
	}
	seen += "; gone after " + span
	if last != nil {
		seen += ", " + outcome(last)
	}
	p.last = append(p.last, fmt.Sprintf("To see what a GET answers an hour after the DELETE: "+
		"stackit server describe %s --project-id %s --region %s", p.first.GetId(), p.ProjectID, p.region))
	return seen + "; after 1 h: " + notTold + "the run's last lines have the command"
}

// aboveQuota asks for a boot volume that is larger than what the quota leaves. The API may take the POST all
// the same, so it is not sent if that could be expensive.
func (p *probes) aboveQuota(ctx context.Context) string {
	const maxSize = 16_000 // GB
	if err := p.Reads.Wait(ctx); err != nil {
		return notTold + describe(err)
	}
	answer, err := p.API.ListQuotas(ctx, p.ProjectID, p.region).Execute()
	if err != nil {
		return notTold + describe(err)
	}
	quota := answer.Quotas.Gigabytes
	size := quota.Limit - quota.Usage + 1
	switch {
	case quota.Limit < 0:
		return notTold + "the project has no limit of GB"
	case size > maxSize:
		return fmt.Sprintf(notTold+"the quota leaves %d GB, more than this suite asks for", size-1)
	}
	return p.createAndDelete(ctx, "quota", func(payload *iaas.CreateServerPayload) {
		payload.BootVolume.Size = new(max(size, bootVolumeSize))
	})
}

// longUserData sends 64 KiB of base64, and 64 KiB before it is encoded.
func (p *probes) longUserData(ctx context.Context) string {
	ask := func(name string, size int) string {
		content := base64.StdEncoding.EncodeToString([]byte("#cloud-config\n" + strings.Repeat("#", size-14)))
		return p.createAndDelete(ctx, name, func(payload *iaas.CreateServerPayload) { payload.UserData = &content })
	}
	return "64 KiB of base64: " + ask("short-data", 48<<10) + "; 64 KiB before base64: " + ask("long-data", 64<<10)
}

func (p *probes) manyLabels(ctx context.Context) string {
	return p.createAndDelete(ctx, "labels", func(payload *iaas.CreateServerPayload) {
		for i := range 64 {
			payload.Labels[fmt.Sprintf("mcm-cloud-test-%d", i)] = "probe"
		}
	})
}

func (p *probes) imageAlone(ctx context.Context) string {
	made, err := p.create(ctx, "image", func(payload *iaas.CreateServerPayload) {
		payload.ImageId, payload.BootVolume = &p.settings.imageID, nil
	})
	if err != nil {
		return outcome(err)
	}
	return "accepted; " + p.volumeAfterDelete(ctx, made)
}

// errorVolume makes a server that cannot boot, of an image that does not exist or with a volume that is too
// small for its image: each is a way into ERROR only if the API takes the POST.
func (p *probes) errorVolume(ctx context.Context) string {
	made, err := p.create(ctx, "error", func(payload *iaas.CreateServerPayload) {
		payload.BootVolume.Source.Id = missingID
	})
	refusal := err
	if err != nil {
		made, err = p.create(ctx, "error", func(payload *iaas.CreateServerPayload) {
			payload.BootVolume.Size = new(int64(1))
		})
	}
	if err != nil {
		return notTold + "an image that does not exist: " + outcome(refusal) + "; a volume of 1 GB: " + outcome(err)
	}
	_, err = p.until(ctx, time.Now(), func(ctx context.Context) (bool, error) {
		server, err := p.server(ctx, made.GetId())
		return err == nil && server.GetStatus() == statusError, err
	})
	if err != nil {
		return notTold + "the server is not in ERROR: " + describe(err)
	}
	return p.volumeAfterDelete(ctx, made)
}

// volumeAfterDelete deletes a server and returns whether its boot volume goes with it. A volume that stays is
// deleted, too.
func (p *probes) volumeAfterDelete(ctx context.Context, made *iaas.Server) string {
	server, err := p.server(ctx, made.GetId())
	if err != nil {
		return notTold + describe(err)
	}
	boot := server.GetBootVolume()
	status := server.GetStatus()
	volume := thing{kind: kindVolume, id: boot.GetId(), name: made.GetName()}
	p.claims(server)
	var left []thing
	err = p.await(ctx, p.patience, func(ctx context.Context) (string, bool) {
		if err := p.project.delete(ctx, serverThing(made)); err != nil && !isGone(err) {
			return describe(err), false
		}
		v, err := p.look(ctx)
		if err != nil {
			return describe(err), false
		}
		left = slices.DeleteFunc(v.parts, func(t thing) bool { return t.id != volume.id })
		isIt := func(server iaas.Server) bool { return server.GetId() == made.GetId() }
		return "lists still show the server", !slices.ContainsFunc(v.servers, isIt)
	})
	if err != nil {
		return notTold + "the server is not gone: " + describe(err)
	}
	switch {
	case volume.id == "":
		return status + ", no boot volume shown"
	case len(left) == 0:
		return status + ", with a boot volume that goes with the server"
	}
	_ = p.project.delete(ctx, volume) // the sweep asks again
	return status + ", with a boot volume that stays without the server"
}

// idleConnections uses one connection again after each time. The driver's own pool would close it before, or
// keep it open by pings.
func (p *probes) idleConnections(ctx context.Context) string {
	pool := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	defer pool.CloseIdleConnections()
	alone, err := newProject(p.settings, &recorder{p.exchanges, pool})
	if err != nil {
		return notTold + describe(err)
	}
	if _, err := alone.networks(ctx); err != nil {
		return notTold + describe(err)
	}
	var seen []string
	for _, idle := range p.idle {
		if err := pause(ctx, idle); err != nil {
			seen = append(seen, fmt.Sprintf("%s: %s%s", idle, notTold, describe(err)))
			break
		}
		seen = append(seen, fmt.Sprintf("%s: %s", idle, useAgain(ctx, alone)))
	}
	return "after " + strings.Join(seen, "; ")
}

// useAgain sends a read and returns on which connection it went.
func useAgain(ctx context.Context, p *project) string {
	var mu sync.Mutex // net/http calls the trace from other goroutines
	var reused []bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		mu.Lock()
		defer mu.Unlock()
		reused = append(reused, info.Reused)
	}})
	_, err := p.networks(traced)
	mu.Lock()
	defer mu.Unlock()
	switch {
	case err != nil && statusOf(err) != http.StatusOK:
		return notTold + describe(err)
	case len(reused) == 0:
		return notTold + "no connection was seen"
	case !reused[0]:
		return "closed before"
	case len(reused) > 1:
		return "reset when it was used"
	default:
		return "still open"
	}
}

func (p *probes) answerHeaders(context.Context) string {
	if headers := p.exchanges.headerRow(); headers != "" {
		return headers
	}
	return notTold + "the API has answered no request"
}
