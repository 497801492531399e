// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// missingID is a valid ID that no resource has.
const missingID = "00000000-0000-4000-8000-00000000dead"

// probe is one open question. ask returns what the API has shown, or why it could not tell.
type probe struct {
	question string
	ask      func(context.Context) string
}

func (p *probes) all() []probe {
	return []probe{
		{"GET of a server that never was", func(ctx context.Context) string { return p.status(ctx, missingID) }},
		{"Claims of an access token", p.tokenClaims},
		{"List in a region that does not exist", func(ctx context.Context) string {
			_, err := p.api.ListServers(ctx, p.ID, "eu99").Execute()
			return outcome(err)
		}},
		{"Time until a list by selector shows a new server", p.selector},
		{"Labels in lists without details", p.labelsInLists},
		{"DELETE of a server that is CREATING", func(ctx context.Context) string {
			return "it is " + p.status(ctx, p.first) + "; " + outcome(p.delete(ctx, p.first))
		}},
		{"GET of a server after its DELETE", func(ctx context.Context) string {
			return "at once: " + p.status(ctx, p.first) + "; gone " + p.gone(ctx, p.first)
		}},
		{"POST above the quota", p.aboveQuota},
		{"userData of 64 KiB", p.longUserData},
		{"A server with 65 labels", func(ctx context.Context) string {
			return p.accepts(ctx, "labels", func(payload *iaas.CreateServerPayload) {
				for i := range 64 {
					payload.Labels[fmt.Sprintf("mcm-probe-%d", i)] = "probe"
				}
			})
		}},
		{"A server with imageId alone", p.imageAlone},
		{"The boot volume of a server in ERROR", p.errorVolume},
		{"Idle connections", p.idleConnections},
		{"Headers of answers", func(context.Context) string {
			return strings.Join(slices.Sorted(maps.Keys(p.seen.header)), ", ")
		}},
	}
}

func (p *probes) tokenClaims(context.Context) string {
	claims := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(p.seen.token, claims); err != nil {
		return "no JWT"
	}
	text := strings.Join(slices.Sorted(maps.Keys(claims)), ", ")
	issued, _ := claims.GetIssuedAt()
	if expires, _ := claims.GetExpirationTime(); issued != nil && expires != nil {
		text += fmt.Sprintf("; valid for %.0f s", expires.Sub(issued.Time).Seconds())
	}
	return text
}

func (p *probes) selector(ctx context.Context) string {
	made, err := p.create(ctx, "first", func(*iaas.CreateServerPayload) {})
	if err != nil {
		return outcome(err)
	}
	p.first = made.GetId()
	var found []iaas.Server
	return p.until(ctx, func() bool { found, _ = p.list(ctx, label+"="+p.name); return len(found) > 0 })
}

func (p *probes) labelsInLists(ctx context.Context) string {
	servers, err := p.list(ctx, "")
	for i := range servers {
		if servers[i].GetId() == p.first {
			return fmt.Sprintf("%d shown, 1 was sent", len(servers[i].GetLabels()))
		}
	}
	return "not told: the list does not show the server: " + outcome(err)
}

// status is what a GET of the server shows.
func (p *probes) status(ctx context.Context, id string) string {
	server, err := p.get(ctx, id)
	if err != nil {
		return outcome(err)
	}
	return server.GetStatus()
}

// gone waits until a GET no longer shows the server, and returns how long that took, and the answer.
func (p *probes) gone(ctx context.Context, id string) string {
	seen := ""
	return p.until(ctx, func() bool {
		seen = p.status(ctx, id)
		return strings.HasPrefix(seen, "4") || seen == "DELETED"
	}) + ": " + seen
}

// aboveQuota asks for a boot volume of 1 GB more than the quota leaves. The API may take the POST all
// the same, so it is not sent if that could be expensive.
func (p *probes) aboveQuota(ctx context.Context) string {
	answer, err := p.api.ListQuotas(ctx, p.ID, p.Region).Execute()
	if err != nil {
		return outcome(err)
	}
	size := answer.Quotas.Gigabytes.Limit - answer.Quotas.Gigabytes.Usage + 1
	if size < 1 || size > 16_000 {
		return fmt.Sprintf("not told: the quota leaves %d GB", size-1)
	}
	return p.accepts(ctx, "quota", func(payload *iaas.CreateServerPayload) {
		payload.BootVolume.Size = new(max(size, 20))
	})
}

// longUserData sends 64 KiB of base64, and 64 KiB before it is encoded.
func (p *probes) longUserData(ctx context.Context) string {
	ask := func(name string, size int) string {
		content := base64.StdEncoding.EncodeToString([]byte("#cloud-config\n" + strings.Repeat("#", size-14)))
		return p.accepts(ctx, name, func(payload *iaas.CreateServerPayload) { payload.UserData = &content })
	}
	return "64 KiB of base64: " + ask("short-data", 48<<10) + "; 64 KiB before base64: " + ask("long-data", 64<<10)
}

func (p *probes) imageAlone(ctx context.Context) string {
	made, err := p.create(ctx, "image", func(payload *iaas.CreateServerPayload) {
		payload.ImageId, payload.BootVolume = &p.ImageID, nil
	})
	if err != nil {
		return outcome(err)
	}
	return "accepted; " + p.bootVolumeAfterDelete(ctx, made.GetId())
}

// errorVolume makes a server that cannot boot: a volume of 1 GB is too small for its image.
func (p *probes) errorVolume(ctx context.Context) string {
	tiny := func(payload *iaas.CreateServerPayload) { payload.BootVolume.Size = new(int64(1)) }
	made, err := p.create(ctx, "error", tiny)
	if err != nil {
		return outcome(err)
	}
	after := p.until(ctx, func() bool { return p.status(ctx, made.GetId()) == "ERROR" })
	return "in ERROR " + after + "; " + p.bootVolumeAfterDelete(ctx, made.GetId())
}

// bootVolumeAfterDelete deletes a server and tells whether its boot volume goes with it. A volume that stays
// is deleted.
func (p *probes) bootVolumeAfterDelete(ctx context.Context, id string) string {
	server, err := p.get(ctx, id)
	if err != nil {
		return outcome(err)
	}
	volume := server.GetBootVolume()
	_ = p.delete(ctx, id) // sent again at the end
	text := "gone " + p.gone(ctx, id)
	if volume.GetId() == "" {
		return text + "; it showed no boot volume"
	}
	if _, err = p.api.GetVolume(ctx, p.ID, p.Region, volume.GetId()).Execute(); err != nil {
		return text + "; GET of its boot volume: " + outcome(err)
	}
	err = p.api.DeleteVolume(ctx, p.ID, p.Region, volume.GetId()).Execute()
	return text + "; its boot volume " + volume.GetId() + " stays; DELETE of it: " + outcome(err)
}

// idleConnections uses one connection again after each time. The driver's own pool would close it before.
func (p *probes) idleConnections(ctx context.Context) string {
	pool := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	defer pool.CloseIdleConnections()
	sessions := &spi.PluginSPIImpl{Config: p.config, Transport: pool}
	alone, err := sessions.Session(spi.Credentials{ProjectID: p.ID, ServiceAccountKey: p.Key})
	if err != nil {
		return err.Error()
	}
	var seen []string
	for _, idle := range append([]time.Duration{0}, p.idle...) {
		<-time.After(idle)
		state := "not used"
		traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			state = map[bool]string{true: "still open", false: "closed before"}[info.Reused]
		}})
		_, err := alone.API.ListServers(traced, p.ID, p.Region).Execute()
		seen = append(seen, fmt.Sprintf("%s: %s, %s", idle, state, outcome(err)))
	}
	return strings.Join(seen[1:], "; ")
}
