// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/resource"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const missing = "f0000000-0000-4000-8000-000000000009"

// catalogueOf has things that cannot be used, beside the default ones.
func catalogueOf() iaasmock.Catalogue {
	all := iaasmock.DefaultCatalogue()
	all.Resources = append(all.Resources,
		iaasmock.Resource{Kind: iaasmock.KindImage, ID: "30000000-0000-4000-8000-00000000000c",
			Fields: map[string]any{"name": "uploading", "diskFormat": "qcow2", "status": "CREATING"}})
	return all
}

func TestOnline(t *testing.T) {
	t.Parallel()
	const (
		image  = "imageId: 30000000-0000-4000-8000-000000000001"
		labels = "  labels: {kubernetes.io/cluster: one}"
		spec   = "providerSpec."
	)
	// with adds a field to the providerSpec.
	with := func(field string) []string { return []string{labels, "  " + field + "\n" + labels} }
	for name, row := range map[string]row{
		"all is there": {nil, 0, nil},
		"no such machine type": {[]string{"c2i.2", "c2i.3", "instanceType: c2i.2", "instanceType: c2i.3"}, 1,
			[]string{"wrong    -:17:16: MachineClass default/worker: providerSpec.machineType: machine type c2i.3"}},
		"no such region": {[]string{"region: eu01", "region: eu09"}, 1,
			[]string{spec + "region: region eu09 does not exist"}},
		"no such zone":  {[]string{zone, "  availabilityZone: eu01-9\n"}, 1, []string{"availabilityZone: zone eu01-9"}},
		"no such image": {[]string{image, "imageId: " + missing}, 1, []string{spec + "imageId: image " + missing}},
		"no such image alone": {[]string{image, "imageId: " + missing, "  bootVolume: {size: 20}\n", ""}, 1,
			[]string{spec + "imageId: "}},
		"image is not ready": {[]string{image, "imageId: 30000000-0000-4000-8000-00000000000c"}, 1,
			[]string{`in state "CREATING"`}},
		"disk too small": {[]string{"{size: 20}", "{size: 9}"}, 1,
			[]string{"-:20:22: MachineClass default/worker: providerSpec.bootVolume.size: is 9 GB: must be at least 10"}},
		"network of another region": {[]string{iaasmock.DefaultNetworkID, iaasmock.SecondRegionNetworkID}, 1,
			[]string{"does not exist"}},
		"no such key pair": {with("keypairName: nobody"), 1, []string{spec + "keypairName: key pair nobody does not exist"}},
		"wrong already":    {[]string{image, "imageId: nowhere"}, 1, []string{`imageId: Invalid value: "nowhere"`}},
		"Secret is not in the files": {[]string{"name: credentials}\nstr", "name: other}\nstr"}, 2,
			[]string{"could not be checked online"}},
		"key cannot be used": {[]string{`serviceAccountKey: "`, `serviceAccountKey: "x`}, 1, []string{"is not the JSON"}},
		"no class":           {[]string{class(t), ""}, 2, []string{"online: the API was not called: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			access, _ := online(t, iaasmock.WithCatalogue(catalogueOf()))
			expect(t, run(t, access, good(t, row.changes...), Options{Online: true}), row.code, row.says...)
		})
	}
}

// The samples, with a key, end with 0, and each thing is read once.
func TestOnlineSamples(t *testing.T) {
	t.Parallel()
	access, cloud := online(t)
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("../../../samples")); err != nil {
		t.Fatal(err)
	}
	secret := changed(t, strings.Split(good(t), "---\n")[0], "name: credentials", "name: stackit-credentials")
	if err := os.WriteFile(filepath.Join(folder, "secret.yaml"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	cloud.ResetCalls()
	result, err := Run(t.Context(), access,
		Options{Files: resource.FilenameOptions{Filenames: []string{folder}}, Online: true})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, result, 0)
	counts := cloud.CallCounts()
	delete(counts, "Token")
	if most := slices.Max(slices.Collect(maps.Values(counts))); most != 1 || len(counts) != 5 {
		t.Errorf("calls %v, want 5 different ones, each once", counts)
	}
}

// What an account may not read is named in one finding, and does not change the exit code. Where all reads are refused,
// the list of servers tells a wrong project from an account with few permissions.
func TestWhatMayNotBeRead(t *testing.T) {
	t.Parallel()
	everything := good(t, "  labels: {", "  keypairName: default-keypair\n  labels: {")
	noReads := []string{"ListMachineTypes", "GetImage", "GetNetwork"}
	for name, row := range map[string]struct {
		text    string
		refused []string
		code    int
		says    []string
	}{
		"machine types": {everything, noReads[:1], 0,
			[]string{"not checked: machine types (no permission for iaas.machine-type.list)"}},
		"all else": {everything, []string{"GetImage", "GetNetwork", "GetKeyPair", "ListAvailabilityZones"}, 0,
			[]string{"iaas.image.get", "iaas.network.get", "key pair", "zones"}},
		"the driver's permissions alone": {good(t), noReads, 0, []string{"not checked: machine types"}},
		"another account's project": {good(t), append([]string{"ListServers"}, noReads...), 1, []string{
			"wrong    project 10000000-0000-4000-8000-000000000001 in eu01: NoPermission: the service account may not",
			"; " + report.RowOf(string(provider.ReasonNoPermission)).Remedy}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			access, cloud := online(t)
			for _, operation := range row.refused {
				cloud.Inject(iaasmock.Fault{Operation: operation, Status: 403})
			}
			result := run(t, access, row.text, Options{Online: true})
			expect(t, result, row.code, row.says...)
			if hints := result.Findings.Count()[report.Hint]; hints != 1 {
				t.Errorf("got %v, want one hint", result.Findings)
			}
		})
	}
}

// What fails is said once, with the driver's reason and the runbook's remedy, however much it keeps from being told.
// Credentials that are refused are wrong: no later attempt succeeds with them.
func TestOutage(t *testing.T) {
	t.Parallel()
	const both = "not fully checked: MachineClass default/worker, MachineClass default/second"
	const iaas, failed = iaasmock.OperationIaaS, provider.ReasonAPIFailed
	for name, row := range map[string]struct {
		fault  iaasmock.Fault
		code   int
		reason provider.Reason
		says   string
	}{
		"token endpoint fails":  {iaasmock.Fault{Operation: "Token", Status: 500}, 2, provider.ReasonTokenEndpointDown, both},
		"no answers":            {iaasmock.Fault{Operation: iaas, DropBefore: true}, 2, failed, both},
		"one service fails":     {iaasmock.Fault{Operation: "GetImage", Status: 500}, 2, failed, "reading image 30000000"},
		"answer cannot be read": {iaasmock.Fault{Operation: "ListMachineTypes", Status: 200, Body: "{}"}, 2, failed, both},
		"answer is null": {iaasmock.Fault{Operation: "ListMachineTypes", Status: 200, Body: "null"}, 2, failed,
			"the answer is empty"},
		"a page of another": {iaasmock.Fault{Operation: "GetImage", Status: 404, Body: "<html>", ContentType: "text/html"}, 2,
			failed, "status 404"},
		"token refused": {iaasmock.Fault{Operation: "Token", Status: 400, Body: `{"error":"invalid_grant"}`}, 1,
			provider.ReasonCredentialsRefused, both},
		"API refuses the token": {iaasmock.Fault{Operation: iaas, Status: 401}, 1, provider.ReasonCredentialsRefused, both},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			access, cloud := online(t)
			cloud.Inject(row.fault)
			result := run(t, access, good(t, class(t), second(class(t))), Options{Online: true})
			expect(t, result, row.code, string(row.reason)+": ", row.says, report.RowOf(string(row.reason)).Remedy)
			if len(result.Findings) != 1 {
				t.Errorf("got %v, want one finding", result.Findings)
			}
			if calls := cloud.CallCounts(); row.says == both && calls["GetNetwork"] > 0 {
				t.Errorf("calls %v, want no others", calls)
			}
		})
	}
}

// Flags name the account in place of a class's own Secret, which may be given or not.
func TestAccountOfFlags(t *testing.T) {
	access, _ := online(t)
	path := filepath.Join(t.TempDir(), "key.json")
	if key, err := key(); err != nil || os.WriteFile(path, key, 0o600) != nil {
		t.Fatal(err)
	}
	access.Direct = &account.Direct{ProjectID: iaasmock.DefaultProjectID, Region: "eu01", KeyPath: path}
	expect(t, run(t, access, changed(t, class(t), "c2i.2", "c2i.3"), Options{Online: true}), 1,
		"Secret default/credentials is not in the files", "machine type c2i.3 does not exist")
}
