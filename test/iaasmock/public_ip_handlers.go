// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/schema"
)

// publicPrefix is the range of public IPs. It is reserved for tests of networks (RFC
// 2544), so that nobody owns such an address.
const publicPrefix = "198.18.0.0/15"

// PublicIP is an address that can be attached to one NIC after another.
type PublicIP struct {
	ID        string `json:"id"`
	ProjectID string `json:"projectId"`
	Region    string `json:"region"`
	// IP is an IPv4 address. In the catalogue it is in 198.18.0.0/15, or empty for a free
	// one.
	IP string `json:"ip"`
	// NICID is empty while it is attached to no NIC.
	NICID  string            `json:"nicId,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// publicIPView is a public IP as the API shows it. networkInterface is left out while it
// is attached to no NIC: the document allows null, but the stackit CLI cannot read it,
// and it works with STACKIT.
type publicIPView struct {
	ID               string            `json:"id"`
	IP               string            `json:"ip"`
	NetworkInterface string            `json:"networkInterface,omitempty"`
	Labels           map[string]string `json:"labels"`
}

func showPublicIP(p *PublicIP) publicIPView {
	return publicIPView{ID: p.ID, IP: p.IP, NetworkInterface: p.NICID, Labels: orEmptyMap(p.Labels)}
}

// PublicIPs returns the public IPs that exist now, the catalogue's included.
func (c *Cloud) PublicIPs() []PublicIP {
	var found []PublicIP
	c.locked(func(time.Time) {
		for p := range c.publicIPs.each() {
			copied := *p
			copied.Labels = orEmptyMap(p.Labels)
			found = append(found, copied)
		}
	})
	return found
}

// publicIPPayload is the body of CreatePublicIP and UpdatePublicIP.
type publicIPPayload struct {
	NetworkInterface nullableText   `json:"networkInterface"`
	Labels           map[string]any `json:"labels"`
}

// nullableText tells null, which removes a value, from a field that is left out.
type nullableText struct {
	set   bool
	value string
}

// UnmarshalJSON is called for null, too, but not for a field that is left out.
func (n *nullableText) UnmarshalJSON(raw []byte) error {
	n.set = true
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	return json.Unmarshal(raw, &n.value)
}

func (c *Cloud) loadPublicIP(p PublicIP) error {
	p.Labels = orEmptyMap(p.Labels)
	if !c.publicPool.has(p.IP) {
		return fmt.Errorf("%s is not in %s", p.IP, publicPrefix)
	}
	ip, err := c.publicPool.take(p.IP)
	if err != nil {
		return err
	}
	p.IP = ip
	nicID := p.NICID
	p.NICID = ""
	c.publicIPs.put(p.ID, &p)
	if nicID == "" {
		return nil
	}
	nic, ok := c.nics.get(nicID)
	if !ok {
		return fmt.Errorf("no NIC %s", nicID)
	}
	associate(&p, nic)
	return nil
}

// publicIPOf returns the public IP that the path names.
func (c *Cloud) publicIPOf(r *request) (*PublicIP, *apiError) {
	ip, ok := c.publicIPs.get(r.vars["publicIpId"])
	if !ok || !r.covers(ip.ProjectID, ip.Region) {
		return nil, notFound("public ip")
	}
	return ip, nil
}

func (c *Cloud) listPublicIPs(r *request) (any, *apiError) {
	selector, err := r.selector()
	if err != nil {
		return nil, err
	}
	views := []publicIPView{}
	c.locked(func(time.Time) {
		for p := range c.publicIPs.each() {
			if r.covers(p.ProjectID, p.Region) && selector.Matches(labels.Set(p.Labels)) {
				views = append(views, showPublicIP(p))
			}
		}
	})
	return items(views), nil
}

type publicRangeView struct {
	CIDR   string `json:"cidr"`
	Region string `json:"region"`
}

// listPublicIPRanges shows the one range for every region.
func (c *Cloud) listPublicIPRanges(*request) (any, *apiError) {
	var views []publicRangeView
	for _, region := range slices.Sorted(maps.Keys(c.catalogue.Regions)) {
		views = append(views, publicRangeView{CIDR: publicPrefix, Region: region})
	}
	return items(views), nil
}

func (c *Cloud) getPublicIP(r *request) (view any, err *apiError) {
	err = c.withPublicIP(r, func(p *PublicIP) *apiError {
		view = showPublicIP(p)
		return nil
	})
	return view, err
}

func (c *Cloud) withPublicIP(r *request, f func(p *PublicIP) *apiError) *apiError {
	var err *apiError
	c.locked(func(time.Time) {
		var ip *PublicIP
		if ip, err = c.publicIPOf(r); err == nil {
			err = f(ip)
		}
	})
	return err
}

func (c *Cloud) createPublicIP(r *request) (view any, err *apiError) {
	var payload publicIPPayload
	if err := r.decode("CreatePublicIPPayload", schema.PublicIP, &payload); err != nil {
		return nil, err
	}
	c.locked(func(time.Time) {
		if err = c.allowPublicIP(r.project(), r.region()); err != nil {
			return
		}
		address, failed := c.publicPool.take("")
		if failed != nil {
			// Source: none; there is no address left to give.
			err = newError(http.StatusTooManyRequests, "No more IP addresses available")
			return
		}
		ip := &PublicIP{ID: c.newID(), ProjectID: r.project(), Region: r.region(), IP: address}
		if err = c.changePublicIP(r, ip, payload); err != nil {
			c.publicPool.release(address)
			return
		}
		c.publicIPs.put(ip.ID, ip)
		c.totals.PublicIPsCreated++
		view = showPublicIP(ip)
	})
	return view, err
}

// updatePublicIP also moves an IP that is attached to another NIC.
func (c *Cloud) updatePublicIP(r *request) (view any, err *apiError) {
	var payload publicIPPayload
	if err := r.decode("UpdatePublicIPPayload", schema.PublicIP, &payload); err != nil {
		return nil, err
	}
	err = c.withPublicIP(r, func(p *PublicIP) *apiError {
		if err := c.changePublicIP(r, p, payload); err != nil {
			return err
		}
		view = showPublicIP(p)
		return nil
	})
	return view, err
}

// changePublicIP sets the fields that the payload has. On error nothing is changed.
func (c *Cloud) changePublicIP(r *request, p *PublicIP, payload publicIPPayload) *apiError {
	changed, err := mergeLabels(p.Labels, payload.Labels)
	if err != nil {
		return err
	}
	if wanted := payload.NetworkInterface; wanted.set && wanted.value != p.NICID {
		target, err := c.publicIPTarget(r, wanted.value)
		if err != nil {
			return err
		}
		c.dissociate(p)
		if target != nil {
			c.freePublicIP(target)
			associate(p, target)
		}
	}
	p.Labels = changed
	return nil
}

// publicIPTarget returns the NIC with this ID to attach a public IP to; nil for no ID,
// and for an unknown NIC. The caller detaches the NIC's current public IP.
func (c *Cloud) publicIPTarget(r *request, id string) (*nic, *apiError) {
	if id == "" {
		return nil, nil
	}
	target, ok := c.findNIC(r, id)
	switch {
	case !ok:
		return nil, c.unconfirmed(noSuch("network interface"))
	case target.publicIPID != "":
		return target, c.unconfirmed(badRequest("network interface %s has a public IP already", id))
	}
	return target, nil
}

// deletePublicIP also deletes an attached IP: the document has no 409 for it.
func (c *Cloud) deletePublicIP(r *request) (any, *apiError) {
	return nil, c.withPublicIP(r, func(p *PublicIP) *apiError {
		c.dissociate(p)
		c.publicPool.release(p.IP)
		c.publicIPs.remove(p.ID)
		c.totals.PublicIPsDeleted++
		return nil
	})
}
