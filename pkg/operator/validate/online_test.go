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
	image := func(last, name string, more map[string]any) {
		fields := map[string]any{"name": name, "diskFormat": "qcow2", "status": "AVAILABLE"}
		maps.Copy(fields, more)
		all.Resources = append(all.Resources,
			iaasmock.Resource{Kind: iaasmock.KindImage, ID: "30000000-0000-4000-8000-00000000000" + last, Fields: fields})
	}
	image("a", "arm", map[string]any{"config": map[string]any{"architecture": "arm64"}})
	image("b", "x86", map[string]any{"config": map[string]any{"architecture": "x86"}})
	image("c", "uploading", map[string]any{"status": "CREATING"})
	image("d", "large", map[string]any{"minDiskSize": 30, "minRam": 8192})
	for _, id := range []string{"40000000-0000-4000-8000-00000000000a", "40000000-0000-4000-8000-00000000000b"} {
		all.Resources = append(all.Resources, iaasmock.Resource{
			Kind: iaasmock.KindSecurityGroup, ID: id, ProjectID: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion,
			Fields: map[string]any{"name": "twins"},
		})
	}
	return all
}

func TestOnline(t *testing.T) {
	t.Parallel()
	const (
		image    = "imageId: 30000000-0000-4000-8000-000000000001"
		labels   = "  labels: {kubernetes.io/cluster: one}"
		boot     = "  " + image + "\n  bootVolume: {size: 20}"
		allZones = `"eu01-1", "eu01-2", "eu01-3", "eu01-m"`
	)
	// with adds a field to the providerSpec.
	with := func(field string) []string { return []string{labels, "  " + field + "\n" + labels} }
	one := []string{"replicas: 2", "replicas: 1"}
	source := func(kind, id, more string) []string {
		return append([]string{boot, "  bootVolume: {source: {type: " + kind + ", id: " + id + "}" + more + "}"}, one...)
	}
	// template changes the nodeTemplate, which is right.
	template := func(changes ...string) []string {
		return []string{goodTemplate, strings.NewReplacer(changes...).Replace(goodTemplate)}
	}
	const arm, x86 = "imageId: 30000000-0000-4000-8000-00000000000a", "imageId: 30000000-0000-4000-8000-00000000000b"
	for name, row := range map[string]row{
		"all is there": {nil, 0, nil},
		"no such machine type": {[]string{"c2i.2", "c2i.3"},
			1, []string{"-:17:16: MachineClass default/worker: providerSpec.machineType: machine type c2i.3 does not exist; " +
				"must be one that project 10000000-0000-4000-8000-000000000001 can use in region eu01"}},
		"no such region": {[]string{"region: eu01", "region: eu09"},
			1, []string{"-:6:11: Secret default/credentials: stringData.region: region eu09 does not exist"}},
		"no such region of class": {with("region: eu09"),
			1, []string{"-:20:11: MachineClass default/worker: providerSpec.region: region eu09 does not exist"}},
		"zone of another region": {with("availabilityZone: eu02-1"),
			1, []string{`providerSpec.availabilityZone: Unsupported value: "eu02-1": supported values: ` + allZones}},
		"fallbacks that are there": {with("fallbacks: [{machineType: c2i.2, availabilityZone: eu01-1}]"), 0, nil},
		"fallback to no machine type": {with("fallbacks: [{machineType: c2i.3}]"),
			0, []string{"-:20:29: MachineClass default/worker: providerSpec.fallbacks[0].machineType: " +
				"machine type c2i.3 does not exist in region eu01"}},
		"fallback to no zone": {with("fallbacks: [{availabilityZone: eu01-9}]"),
			0, []string{"providerSpec.fallbacks[0].availabilityZone: zone eu01-9 does not exist in region eu01"}},
		"fallback to a larger machine type": {with("fallbacks: [{machineType: g2i.4}]"),
			0, []string{"fallbacks[0].machineType: g2i.4 has 4 CPUs and 16384 MB of memory, c2i.2 has 2 and 4096"}},
		"zone of the Secret": {[]string{"region: eu01", "region: eu01-9"}, 1, []string{`Unsupported value: "eu01-9"`}},
		"no such image": {[]string{image, "imageId: " + missing},
			1, []string{"-:18:12: MachineClass default/worker: providerSpec.imageId: image " + missing + " does not exist"}},
		"image is not ready": {[]string{image, "imageId: 30000000-0000-4000-8000-00000000000c"},
			1, []string{`is in state "CREATING"; must be AVAILABLE`}},
		"disk too small": {[]string{"{size: 20}", "{size: 9}"},
			1, []string{"-:19:22: MachineClass default/worker: providerSpec.bootVolume.size: " +
				"Invalid value: 9: must be at least 10 GB, which the image requires"}},
		"image alone": {[]string{"  bootVolume: {size: 20}\n", ""},
			0, []string{
				"not checked: quota for MachineClass default/worker (its machine type or the size of its disk is not known)"}},
		"no such image alone": {[]string{image, "imageId: " + missing, "  bootVolume: {size: 20}\n", ""},
			1, []string{"providerSpec.imageId: "}},
		"disk without a size": {[]string{"{size: 20}", "{}"},
			1, []string{"-:19:15: MachineClass default/worker: providerSpec.bootVolume.size: Required value: "}},
		"machine type too small": {[]string{image, "imageId: 30000000-0000-4000-8000-00000000000d", "{size: 20}",
			"{size: 30}"},
			1, []string{
				"providerSpec.machineType: machine type c2i.2 has 4096 MB of memory; the image requires at least 8192 MB"}},
		"nodeTemplate has less": {template("cpu: 2", "cpu: 1900m", "4Gi", "3500Mi"), 0, nil},
		"more CPUs": {template("cpu: 2", "cpu: 2001m"),
			1, []string{`-:21:32: MachineClass default/worker: nodeTemplate.capacity.cpu: ` +
				`Invalid value: "2001m": must be at most 2, the capacity of machine type c2i.2`}},
		"more memory": {template("4Gi", "4097Mi"),
			1, []string{
				`nodeTemplate.capacity.memory: Invalid value: "4097Mi": must be at most 4Gi, the capacity of machine type c2i.2`}},
		"another region": {template("region: eu01", "region: eu02"),
			1, []string{`nodeTemplate.region: Invalid value: "eu02": must be "eu01", the region of the servers`}},
		"no zone of the region": {template("eu01-1", "eu02-1"),
			1, []string{`nodeTemplate.zone: Unsupported value: "eu02-1": supported values: ` + allZones}},
		"another zone": {with("availabilityZone: eu01-2"),
			1, []string{`nodeTemplate.zone: Invalid value: "eu01-1": must be "eu01-2", the availabilityZone of the servers`}},
		"architecture differs": {[]string{image, arm},
			1, []string{`nodeTemplate.architecture: Invalid value: "amd64": must be arm64, the image's architecture`}},
		"architecture is missing": {append(template(", architecture: amd64", ""), image, arm),
			1, []string{
				`nodeTemplate.architecture: Required value: must be arm64, the image's architecture: ` +
					`without one, cluster-autoscaler assumes amd64`}},
		"architecture is the usual": {append(template(", architecture: amd64", ""), image, x86), 0, nil},
		"image does not tell of it": {template("amd64", "arm64"), 0, nil},
		"no such snapshot": {source("snapshot", missing, ", size: 20"),
			1, []string{"providerSpec.bootVolume.source.id: snapshot " + missing + " does not exist"}},
		"snapshot without a size": {source("snapshot", iaasmock.DefaultSnapshotID, ""),
			1, []string{"providerSpec.bootVolume.size: Required value: "}},
		"no such boot volume": {source("volume", missing, ""),
			1, []string{"providerSpec.bootVolume.source.id: volume " + missing + " does not exist"}},
		"no such performance class": {[]string{"{size: 20}", "{size: 20, performanceClass: storage_premium_perf3}"},
			1, []string{"providerSpec.bootVolume.performanceClass: performance class storage_premium_perf3 does not exist"}},
		"performance class": {[]string{"{size: 20}", "{size: 20, performanceClass: storage_premium_perf2}"}, 0, nil},
		"no such network": {[]string{"networkId: 20000000-0000-4000-8000-000000000001", "networkId: " + missing},
			1, []string{"providerSpec.networking.networkId: network " + missing + " does not exist"}},
		"network of another region": {
			[]string{"networkId: 20000000-0000-4000-8000-000000000001", "networkId: " + iaasmock.SecondRegionNetworkID},
			1, []string{"does not exist"}},
		"no such NIC": {append(with("networking: {nicIds: ["+iaasmock.DefaultNICID+", "+missing+"]}"), one...),
			1, []string{"providerSpec.networking.nicIds[1]: NIC " + missing + " does not exist"}},
		"no such security group": {with("securityGroups: [worker, " + missing + "]"),
			1, []string{"securityGroups[0]: security group worker does not exist",
				"securityGroups[1]: security group " + missing + " does not exist"}},
		"security groups": {with("securityGroups: [workers, 40000000-0000-4000-8000-000000000002]"), 0, nil},
		"security groups of a name": {with("securityGroups: [twins]"),
			2, []string{"securityGroups[0]: 2 security groups have the name twins"}},
		"no such affinity group": {with("affinityGroup: " + missing),
			1, []string{"providerSpec.affinityGroup: affinity group " + missing + " does not exist"}},
		"no such volume": {append(with("volumes: ["+missing+"]"), one...),
			1, []string{"providerSpec.volumes[0]: volume " + missing + " does not exist"}},
		"no such key pair": {with("keypairName: nobody"),
			1, []string{"providerSpec.keypairName: key pair nobody does not exist; create it with these credentials"}},
		"service account": {with("serviceAccountMails: [a@sa.stackit.cloud]"),
			0, []string{"project 10000000-0000-4000-8000-000000000001 in eu01: not checked: " +
				"service account a@sa.stackit.cloud (the IaaS API does not show service accounts)"}},
		"wrong already": {[]string{image, "imageId: nowhere", "c2i.2", "'-'"},
			1, []string{`imageId: Invalid value: "nowhere"`, `machineType: Invalid value: "-"`}},
		"Secret is not in the files": {[]string{"metadata: {name: credentials}", "metadata: {name: other}"},
			2, []string{"MachineClass default/worker: could not be checked online: its Secret is not in the files"}},
		"key cannot be used": {[]string{`serviceAccountKey: "`, `serviceAccountKey: "x`},
			1, []string{"could not be checked online: Secret default/credentials: the service-account key is not the JSON"}},
		"no class": {[]string{class(t), ""}, 2, []string{"online: the API was not called: there is no MachineClass"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			access, _ := online(t, iaasmock.WithCatalogue(catalogueOf()))
			result := run(t, access, good(t, row.changes...), Options{Online: true})
			expect(t, result, row.code, row.says...)
			if row.code == 0 && row.says == nil && len(result.Findings) > 0 {
				t.Errorf("got %v, want nothing", result.Findings)
			}
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
	expect(t, result, 0, "not checked: service account ")
	counts := cloud.CallCounts()
	delete(counts, "Token")
	if most := slices.Max(slices.Collect(maps.Values(counts))); most != 1 || len(counts) != 9 {
		t.Errorf("calls %v, want 9 different ones, each once", counts)
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	// What a machine of c2i.2 with 20 GB takes, beside what is there.
	exact := iaasmock.Quota{VCPUs: 2, RAM: 4096, Volumes: 3, Gigabytes: 80, NICs: 2}
	second := func(text string) string { return text + strings.Replace(text, "name: worker", "name: second", 1) }
	for name, row := range map[string]struct {
		change func(*iaasmock.Quota)
		row
	}{
		"just enough": {func(*iaasmock.Quota) {}, row{nil, 0, nil}},
		"no limit":    {func(q *iaasmock.Quota) { q.VCPUs = -1 }, row{nil, 0, nil}},
		"vcpu": {func(q *iaasmock.Quota) { q.VCPUs-- },
			row{nil, 1, []string{"project 10000000-0000-4000-8000-000000000001 in eu01: " +
				"quota vcpu: 2 needed, 1 of 1 left; raise the quota"}}},
		"ram": {func(q *iaasmock.Quota) { q.RAM-- },
			row{nil, 1, []string{"quota ram: 4096 MB needed, 4095 of 4095 left"}}},
		"volumes": {func(q *iaasmock.Quota) { q.Volumes-- },
			row{nil, 1, []string{"quota volumes: 1 needed, 0 of 2 left"}}},
		"gigabytes": {func(q *iaasmock.Quota) { q.Gigabytes-- },
			row{nil, 1, []string{"quota gigabytes: 20 GB needed, 19 of 79 left"}}},
		"nics": {func(q *iaasmock.Quota) { q.NICs-- }, row{nil, 1, []string{"quota nics: 1 needed, 0 of 1 left"}}},
		"existing NICs": {func(q *iaasmock.Quota) { q.NICs = 0 },
			row{[]string{"  labels: {", "  networking: {nicIds: [" + iaasmock.DefaultNICID + "]}\n  labels: {",
				"replicas: 2", "replicas: 1"}, 0, nil}},
		"existing disk": {func(q *iaasmock.Quota) { q.Volumes, q.Gigabytes = 0, 0 },
			row{[]string{"  imageId: 30000000-0000-4000-8000-000000000001\n  bootVolume: {size: 20}",
				"  bootVolume: {source: {type: volume, id: " + iaasmock.DefaultBootVolumeID + "}}",
				"replicas: 2", "replicas: 1"}, 0, nil}},
		"two classes": {func(*iaasmock.Quota) {},
			row{[]string{class(t), second(class(t))}, 1, []string{"quota vcpu: 4 needed, 2 of 2 left"}}},
		"type does not exist": {func(*iaasmock.Quota) {},
			row{[]string{"c2i.2", "c2i.9"}, 1, []string{"not checked: quota for MachineClass default/worker"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			quota := exact
			row.change(&quota)
			access, _ := online(t, iaasmock.WithQuota(quota))
			expect(t, run(t, access, good(t, row.changes...), Options{Online: true}), row.code, row.says...)
		})
	}
}

// everything names all that one class can.
func everything(t *testing.T) string {
	t.Helper()
	return good(t, "{size: 20}", "{size: 20, performanceClass: storage_premium_perf1}", "  labels: {",
		"  securityGroups: [workers, 40000000-0000-4000-8000-000000000002]\n"+
			"  affinityGroup: 50000000-0000-4000-8000-000000000001\n"+
			"  volumes: [60000000-0000-4000-8000-000000000001]\n  keypairName: default-keypair\n  labels: {", "replicas: 2",
		"replicas: 1")
}

// What an account may not read is named in one finding, and does not change the exit code.
func TestWhatMayNotBeRead(t *testing.T) {
	t.Parallel()
	for name, permissions := range map[string]map[string]string{
		"machine types": {"ListMachineTypes": "iaas.machine-type.list"},
		"all else": {
			"GetImage": "iaas.image.get", "GetNetwork": "iaas.network.get", "GetVolume": "iaas.volume.get",
			"ListSecurityGroups": "iaas.security-group.list", "GetSecurityGroup": "iaas.security-group.get",
			"GetAffinityGroup": "iaas.affinity-group.get", "ListVolumePerformanceClasses": "iaas.volume-performance-class.list",
			"ListQuotas": "iaas.quota.get", "GetKeyPair": "key pair", "ListAvailabilityZones": "availability zones",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			access, cloud := online(t)
			for operation := range permissions {
				cloud.Inject(iaasmock.Fault{Operation: operation, Status: 403})
			}
			result := run(t, access, everything(t), Options{Online: true})
			expect(t, result, 0, slices.Collect(maps.Values(permissions))...)
			if len(result.Findings) != 1 {
				t.Errorf("got %d findings, want one:\n%v", len(result.Findings), result.Findings)
			}
		})
	}
}

// Where all reads are refused, the list of servers tells a wrong project from an account with few permissions.
func TestWhereNothingMayBeRead(t *testing.T) {
	t.Parallel()
	noReads := []string{"ListMachineTypes", "GetImage", "GetNetwork"}
	for name, row := range map[string]struct {
		refused []string
		code    int
		says    []string
	}{
		"the driver's permissions alone": {noReads, 0, []string{"not checked: machine types"}},
		"another account's project": {append([]string{"ListServers"}, noReads...), 1, []string{
			"project 10000000-0000-4000-8000-000000000001 in eu01: the service account may not list its servers either, " +
				"which the driver needs, or the project does not exist; correct projectId or the key",
			"servers (no permission for iaas.server.list)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			access, cloud := online(t)
			for _, operation := range row.refused {
				cloud.Inject(iaasmock.Fault{Operation: operation, Status: 403})
			}
			expect(t, run(t, access, good(t), Options{Online: true}), row.code, row.says...)
		})
	}
}

func TestQuotasFail(t *testing.T) {
	t.Parallel()
	access, cloud := online(t)
	cloud.Inject(iaasmock.Fault{Operation: "ListQuotas", Status: 500})
	result := run(t, access, good(t), Options{Online: true})
	expect(t, result, report.ExitUnknown, "not fully checked: the quota; try again")
}

// What fails is said once, however much it keeps from being told.
func TestOutage(t *testing.T) {
	t.Parallel()
	const both = "MachineClass default/worker, MachineClass default/second"
	second := func(text string) string { return text + strings.Replace(text, "name: worker", "name: second", 1) }
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		says  string
	}{
		"token endpoint fails": {iaasmock.Fault{Operation: "Token", Status: 500}, string(provider.ReasonTokenEndpointDown)},
		"no answers": {iaasmock.Fault{Operation: iaasmock.OperationIaaS, DropBefore: true},
			"not fully checked: " + both},
		"gateway without API": {iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: 503},
			"Service Unavailable; not fully checked"},
		"one service fails": {iaasmock.Fault{Operation: "GetImage", Status: 500},
			"reading image 30000000-0000-4000-8000-000000000001: "},
		"answer cannot be read": {iaasmock.Fault{Operation: "ListMachineTypes", Status: 200, Body: "{}"},
			"reading machine types: "},
		"answer is empty": {iaasmock.Fault{Operation: "ListMachineTypes", Status: 200, Body: "null"},
			"reading machine types: the answer is empty"},
		"page of somebody else": {iaasmock.Fault{Operation: "GetImage", Status: 404, Body: "<html>",
			ContentType: "text/html"}, "status 404"},
		"project is not known": {iaasmock.Fault{Operation: "GetImage", Status: 404,
			Body: `{"code":404,"msg":"project not found"}`}, "project not found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			access, cloud := online(t)
			cloud.Inject(row.fault)
			result := run(t, access, good(t, class(t), second(class(t))), Options{Online: true})
			expect(t, result, report.ExitUnknown, row.says)
			if count := result.Findings.Count(); count[report.Unknown] != 1 || count[report.Wrong] != 0 {
				t.Errorf("got %v, want one finding", result.Findings)
			}
			if last := result.Findings[len(result.Findings)-1]; last.Remedy != "try again later" {
				t.Errorf("the advice is %q", last.Remedy)
			}
			if calls := cloud.CallCounts(); calls["GetNetwork"] > 0 || slices.Max(slices.Collect(maps.Values(calls))) > 20 {
				t.Errorf("calls %v, want no others", calls)
			}
		})
	}
}

// Credentials that are refused are wrong, as for the doctor: no later attempt succeeds with them.
func TestRefusedCredentials(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fault  iaasmock.Fault
		remedy string
	}{
		"by the token endpoint": {iaasmock.Fault{Operation: "Token", Status: 400, Body: `{"error":"invalid_grant"}`},
			"create a new key: this key was deleted or deactivated, has expired, " +
				"or belongs to another environment of STACKIT; or correct the clock"},
		"by the API": {iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: 401},
			"check the clock, and that the endpoints of API and token belong to the same environment of STACKIT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			access, cloud := online(t)
			cloud.Inject(row.fault)
			result := run(t, access, good(t), Options{Online: true})
			expect(t, result, report.ExitWrong, string(provider.ReasonCredentialsRefused),
				"not fully checked: MachineClass default/worker; "+row.remedy)
			if len(result.Findings) != 1 {
				t.Errorf("got %v, want one finding", result.Findings)
			}
		})
	}
}

// Flags name the account in place of a class's own Secret, which may be given or not.
func TestAccountOfTheEnvironment(t *testing.T) {
	access, _ := online(t)
	path := filepath.Join(t.TempDir(), "key.json")
	if key, err := key(); err != nil || os.WriteFile(path, key, 0o600) != nil {
		t.Fatal(err)
	}
	access.Direct = &account.Direct{ProjectID: iaasmock.DefaultProjectID, Region: "eu01", KeyPath: path}
	expect(t, run(t, access, changed(t, class(t), "c2i.2", "c2i.3"), Options{Online: true}), 1,
		"Secret default/credentials is not in the files", "machine type c2i.3 does not exist")
	text := changed(t, good(t), iaasmock.DefaultProjectID, iaasmock.SecondProjectID, "c2i.2", "c2i.3")
	expect(t, run(t, access, text, Options{Online: true}), 1,
		"machine type c2i.3 does not exist; must be one that project "+iaasmock.DefaultProjectID)
}
