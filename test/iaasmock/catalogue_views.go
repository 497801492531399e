// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "time"

type networkView struct {
	ID     string             `json:"id"`
	Name   string             `json:"name"`
	Status string             `json:"status"`
	Routed bool               `json:"routed"`
	DHCP   bool               `json:"dhcp"`
	IPv4   *networkFamilyView `json:"ipv4,omitempty"`
	IPv6   *networkFamilyView `json:"ipv6,omitempty"`
	Labels map[string]string  `json:"labels"`
}

type networkFamilyView struct {
	Prefixes    []string `json:"prefixes"`
	Gateway     string   `json:"gateway"`
	Nameservers []string `json:"nameservers"`
}

func (c *Cloud) showNetwork(n Network) networkView {
	view := networkView{
		ID: n.ID, Name: n.Name, Status: "CREATED", Routed: true, DHCP: true, Labels: orEmptyMap(n.Labels),
	}
	// Networks are as seeded for as long as the cloud lives; only what their
	// pools have given out changes, and that is not shown.
	live, _ := c.networks.get(n.ID)
	if n.IPv4Prefix != "" {
		view.IPv4 = &networkFamilyView{Prefixes: []string{n.IPv4Prefix}, Gateway: live.v4.gateway(), Nameservers: []string{}}
	}
	if n.IPv6Prefix != "" {
		view.IPv6 = &networkFamilyView{Prefixes: []string{n.IPv6Prefix}, Gateway: live.v6.gateway(), Nameservers: []string{}}
	}
	return view
}

type imageView struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	DiskFormat  string            `json:"diskFormat"`
	MinDiskSize int64             `json:"minDiskSize"`
	MinRAM      int64             `json:"minRam"`
	Owner       string            `json:"owner,omitempty"`
	Scope       string            `json:"scope"`
	Status      string            `json:"status"`
	Protected   bool              `json:"protected"`
	Labels      map[string]string `json:"labels"`
}

func showImage(i Image) imageView {
	view := imageView{
		ID: i.ID, Name: i.Name, DiskFormat: i.DiskFormat, MinDiskSize: i.MinDiskSize, MinRAM: i.MinRAM,
		Owner: i.ProjectID, Scope: "public", Status: "AVAILABLE", Labels: orEmptyMap(i.Labels),
	}
	if i.ProjectID != "" {
		view.Scope = "local"
	}
	return view
}

type machineTypeView struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	VCPUs       int64             `json:"vcpus"`
	RAM         int64             `json:"ram"`
	Disk        int64             `json:"disk"`
	ExtraSpecs  map[string]string `json:"extraSpecs"`
}

func showMachineType(t MachineType) machineTypeView {
	return machineTypeView{
		Name: t.Name, Description: t.Description, VCPUs: t.VCPUs, RAM: t.RAM, Disk: t.Disk,
		ExtraSpecs: orEmptyMap(t.ExtraSpecs),
	}
}

type securityGroupView struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Stateful bool              `json:"stateful"`
	Rules    []any             `json:"rules"`
	Labels   map[string]string `json:"labels"`
}

func showSecurityGroup(g SecurityGroup) securityGroupView {
	return securityGroupView{ID: g.ID, Name: g.Name, Stateful: true, Rules: []any{}, Labels: orEmptyMap(g.Labels)}
}

type affinityGroupView struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Policy  string   `json:"policy"`
	Members []string `json:"members"`
}

func (c *Cloud) showAffinityGroup(g AffinityGroup) affinityGroupView {
	view := affinityGroupView{ID: g.ID, Name: g.Name, Policy: g.Policy, Members: []string{}}
	c.locked(func(time.Time) {
		for _, s := range c.servers.all() {
			if s.AffinityGroup == g.ID {
				view.Members = append(view.Members, s.ID)
			}
		}
	})
	return view
}

type keypairView struct {
	Name        string            `json:"name"`
	PublicKey   string            `json:"publicKey"`
	Fingerprint string            `json:"fingerprint"`
	Labels      map[string]string `json:"labels"`
}

func showKeypair(k Keypair) keypairView {
	return keypairView{Name: k.Name, PublicKey: k.PublicKey, Fingerprint: k.Fingerprint, Labels: orEmptyMap(k.Labels)}
}
