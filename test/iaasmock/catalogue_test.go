// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestFingerprintOfTheDefaultKeypair(t *testing.T) {
	m := openMock(t)
	known := m.want(200, "GET", "/v2/keypairs/"+iaasmock.DefaultKeypairName, nil)
	same := m.want(201, "POST", "/v2/keypairs", object{"name": "same", "publicKey": known["publicKey"]})
	if same["fingerprint"] != known["fingerprint"] {
		t.Errorf("the fingerprint in the catalogue is %v, want %v", known["fingerprint"], same["fingerprint"])
	}
}

func TestKeypairs(t *testing.T) {
	m := strictMock(t)
	made := m.want(201, "POST", "/v2/keypairs", object{"name": "mine", "publicKey": sshKey, "labels": object{"a": "b"}})
	// As ssh-keygen -l -E md5 prints it.
	if made["fingerprint"] != "27:c6:3f:84:be:6f:a4:5e:eb:f9:4d:6e:bd:c8:bb:48" || made["publicKey"] != sshKey {
		t.Errorf("made as %v", made)
	}
	if answer := m.want(409, "POST", "/v2/keypairs", object{"name": "mine", "publicKey": sshKey}); answer["msg"] != "Conflict" {
		t.Errorf("again: %v", answer)
	}
	nameless := m.want(201, "POST", "/v2/keypairs", object{"publicKey": sshKey})
	if name := nameless["name"].(string); !strings.HasPrefix(name, "keypair-") {
		t.Errorf("without a name it is %q", name)
	}
	for _, broken := range []string{"ssh-rsa " + strings.Fields(sshKey)[1], "ssh-ed25519 AAAA", "ssh-ed25519 A"} {
		m.want(400, "POST", "/v2/keypairs", object{"name": "other", "publicKey": broken})
	}
	updated := m.want(200, "PATCH", "/v2/keypairs/mine", object{"labels": object{"a": nil, "c": "d"}})
	if diff := cmp.Diff(object{"c": "d"}, updated["labels"]); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	m.want(400, "PATCH", "/v2/keypairs/mine", object{"labels": object{"stackit-a": "b"}})
	m.want(404, "PATCH", "/v2/keypairs/yours", object{})
	if keypairs := m.cloud.Keypairs(); len(keypairs) != 3 || keypairs[1].Labels["c"] != "d" {
		t.Errorf("key pairs are %+v", keypairs)
	}
	m.create(object{"keypairName": "mine"})
	m.want(204, "DELETE", "/v2/keypairs/mine", nil)
	m.want(404, "DELETE", "/v2/keypairs/mine", nil)
	m.want(404, "POST", inRegion+"/servers", serverBody(object{"keypairName": "mine"}))
}

func TestImagesWaitForTheirContent(t *testing.T) {
	m := strictMock(t)
	answer := m.want(201, "POST", inRegion+"/images", object{"name": "mine", "diskFormat": "qcow2", "minDiskSize": 15})
	id, upload := answer["id"].(string), answer["uploadUrl"].(string)
	path := inRegion + "/images/" + id
	if image := m.want(200, "GET", path, nil); image["status"] != "CREATING" || image["scope"] != "local" ||
		image["owner"] != iaasmock.DefaultProjectID || image["checksum"] != nil {
		t.Errorf("made as %v", image)
	}
	fromIt := object{"bootVolume": object{"size": 15, "source": object{"type": "image", "id": id}}}
	if refused := m.want(400, "POST", inRegion+"/servers", serverBody(fromIt)); refused["msg"] != "Image "+id+" is not active." {
		t.Errorf("a server from it: %v", refused)
	}

	content := bytes.Repeat([]byte("image"), 2<<20)
	sum := sha512.Sum512(content)
	put := func(method, to string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, to, bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	if got := []int{put("POST", upload), put("PUT", upload+"x"), put("PUT", upload), put("PUT", upload)}; !cmp.Equal(got, []int{405, 404, 200, 404}) {
		t.Errorf("uploads were answered with %v", got)
	}
	image := m.want(200, "GET", path, nil)
	want := object{"algorithm": "sha512", "digest": hex.EncodeToString(sum[:])}
	if image["status"] != "AVAILABLE" || image["size"] != float64(len(content)) || !cmp.Equal(image["checksum"], want) {
		t.Errorf("uploaded as %v", image)
	}
	if images := m.cloud.Images(); images[2].ID != id || images[2].Size != int64(len(content)) {
		t.Errorf("images are %+v", images)
	}
	m.create(fromIt)
	m.want(400, "POST", inRegion+"/servers", serverBody(object{"bootVolume": object{"size": 14, "source": object{"type": "image", "id": id}}}))
	m.want(404, "GET", "/v2/projects/"+iaasmock.SecondProjectID+"/regions/eu01/images/"+id, nil)

	late := m.want(201, "POST", inRegion+"/images", object{"name": "late", "diskFormat": "raw"})
	m.want(204, "DELETE", inRegion+"/images/"+late["id"].(string), nil)
	if got := put("PUT", late["uploadUrl"].(string)); got != 404 {
		t.Errorf("a deleted image takes content: %d", got)
	}
}

func TestImageChanges(t *testing.T) {
	m := strictMock(t)
	path := m.made(201, inRegion+"/images", object{"name": "mine", "diskFormat": "raw", "protected": true, "config": object{"uefi": true, "eufi": true}})
	if answer := m.want(403, "DELETE", path, nil); !strings.Contains(answer["msg"].(string), "protected") {
		t.Errorf("a protected image: %v", answer)
	}
	updated := m.want(200, "PATCH", path, object{"protected": false, "minRam": 512, "labels": object{"a": "b"}})
	if updated["minRam"] != 512.0 || updated["name"] != "mine" || !cmp.Equal(updated["config"], object{"uefi": true}) {
		t.Errorf("updated to %v", updated)
	}
	for _, refused := range []object{{"diskFormat": "vhd"}, {"minDiskSize": -1}, {"labels": object{"stackit-a": "b"}}} {
		m.want(400, "PATCH", path, refused)
	}
	if got := names(m.list("/images?label_selector=a%3Db")); !cmp.Equal(got, []string{"mine"}) {
		t.Errorf("listed %v", got)
	}
	m.want(204, "DELETE", path, nil)
	m.want(404, "GET", path, nil)

	public := inRegion + "/images/" + iaasmock.DefaultImageID
	m.want(403, "PATCH", public, object{"name": "mine"})
	m.want(403, "DELETE", public, nil)
}

func TestAffinityGroups(t *testing.T) {
	m := strictMock(t)
	if answer := m.want(400, "POST", inRegion+"/affinity-groups", object{"name": "a", "policy": "affinity"}); answer["msg"] != "The affinity group policy is not supported" {
		t.Errorf("an unknown policy: %v", answer)
	}
	path := m.made(201, inRegion+"/affinity-groups", object{"name": "mine", "policy": "hard-anti-affinity"})
	group := path[len(inRegion+"/affinity-groups/"):]
	first, second := m.create(object{"affinityGroup": group}), m.create(object{"affinityGroup": group})
	m.create(nil)
	if got := m.want(200, "GET", path, nil)["members"]; !cmp.Equal(got, []any{first, second}) {
		t.Errorf("members are %v", got)
	}
	m.want(204, "DELETE", inRegion+"/servers/"+first, nil)
	m.clock.Step(boot)
	if got := m.want(200, "GET", path, nil)["members"]; !cmp.Equal(got, []any{second}) {
		t.Errorf("members are %v", got)
	}
	if groups := m.cloud.AffinityGroups(); len(groups) != 2 || groups[1].Policy != "hard-anti-affinity" {
		t.Errorf("groups are %+v", groups)
	}
	m.want(204, "DELETE", path, nil)
	m.want(404, "DELETE", path, nil)
	if got := m.server(second).AffinityGroup; got != "" {
		t.Errorf("the server is in %s", got)
	}
	m.want(404, "POST", inRegion+"/servers", serverBody(object{"affinityGroup": group}))
}

func TestMachineTypeFilter(t *testing.T) {
	m := openMock(t)
	for _, row := range []struct {
		filter string
		want   []string
	}{
		{"", []string{"t1.1", "c2i.2", "g2i.4", "m2i.8", "c1a.8d", "n1.14d.g1"}},
		{"vcpus == 8", []string{"m2i.8", "c1a.8d"}},
		{"vcpus >= 4 && ram < 65536", []string{"g2i.4", "c1a.8d"}},
		{`name startsWith "c"`, []string{"c2i.2", "c1a.8d"}},
		{`name in ["t1.1", "g2i.4"] or extraSpecs.gpu == "1"`, []string{"t1.1", "g2i.4", "n1.14d.g1"}},
		{"disk > 0", []string{}},
	} {
		got := names(m.list("/machine-types?filter=" + url.QueryEscape(row.filter)))
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.filter, diff)
		}
	}
	for _, broken := range []string{"vcpus >", "cores == 2", "vcpus", `vcpus == "2"`, `int(name) > 1`} {
		if answer := m.want(400, "GET", inRegion+"/machine-types?filter="+url.QueryEscape(broken), nil); !strings.HasPrefix(answer["msg"].(string), "invalid filter: ") {
			t.Errorf("%s: %v", broken, answer)
		}
	}
}
