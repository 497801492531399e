// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const missing = "f0000000-0000-4000-8000-000000000009"

// onlineCatalogue has things that cannot be used, beside the default ones.
func onlineCatalogue() iaasmock.Catalogue {
	catalogue := iaasmock.DefaultCatalogue()
	catalogue.Images = append(catalogue.Images,
		iaasmock.Image{ID: "30000000-0000-4000-8000-00000000000a", Name: "arm", DiskFormat: "qcow2", Config: map[string]any{"architecture": "arm64"}},
		iaasmock.Image{ID: "30000000-0000-4000-8000-00000000000b", Name: "x86", DiskFormat: "qcow2", Config: map[string]any{"architecture": "x86"}},
		iaasmock.Image{ID: "30000000-0000-4000-8000-00000000000c", Name: "uploading", DiskFormat: "qcow2", Status: iaasmock.ImageCreating},
		iaasmock.Image{ID: "30000000-0000-4000-8000-00000000000d", Name: "large", DiskFormat: "qcow2", MinDiskSize: 30, MinRAM: 8192})
	catalogue.Snapshots = append(catalogue.Snapshots, iaasmock.Snapshot{
		ID: "80000000-0000-4000-8000-00000000000a", ProjectID: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion,
		VolumeID: iaasmock.DefaultVolumeID, Status: iaasmock.SnapshotError, AvailabilityZone: "eu01-1", Size: 20,
	})
	for _, id := range []string{"40000000-0000-4000-8000-00000000000a", "40000000-0000-4000-8000-00000000000b"} {
		catalogue.SecurityGroups = append(catalogue.SecurityGroups, iaasmock.SecurityGroup{
			ID: id, ProjectID: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion, Name: "twins",
		})
	}
	return catalogue
}

func TestValidateOnline(t *testing.T) {
	t.Parallel()
	cloud, env := startMock(t, iaasmock.WithCatalogue(onlineCatalogue()))
	const (
		image  = "imageId: 30000000-0000-4000-8000-000000000001"
		labels = "  labels: {kubernetes.io/cluster: one}"
		boot   = "  " + image + "\n  bootVolume: {size: 20}"
	)
	// with adds a field to the providerSpec.
	with := func(field string) []string { return []string{labels, "  " + field + "\n" + labels} }
	source := func(kind, id, more string) []string {
		return []string{boot, "  bootVolume: {source: {type: " + kind + ", id: " + id + "}" + more + "}"}
	}
	// template adds a nodeTemplate that is right, but for pairs of changes.
	template := func(changes ...string) []string {
		right := "nodeTemplate: {capacity: {cpu: 2, gpu: 0, memory: 4Gi}, instanceType: c2i.2, region: eu01, zone: eu01-1, architecture: amd64}\n"
		return []string{"providerSpec:\n", strings.NewReplacer(changes...).Replace(right) + "providerSpec:\n"}
	}
	const arm, x86 = "imageId: 30000000-0000-4000-8000-00000000000a", "imageId: 30000000-0000-4000-8000-00000000000b"
	for name, row := range map[string]struct {
		changes []string
		code    int
		says    []string
	}{
		"all is there":              {nil, 0, []string{"with 6 findings that are fine (-v=1 shows them): nothing is wrong."}},
		"no such machine type":      {[]string{"c2i.2", "c2i.3"}, 1, []string{"-:17:16: MachineClass default/worker: providerSpec.machineType: machine type c2i.3 is not there; did you mean c2i.2?"}},
		"no machine type like it":   {[]string{"c2i.2", "enormous"}, 1, []string{"machine type enormous is not there; must be one that project 10000000-0000-4000-8000-000000000001 can use in region eu01"}},
		"no such region":            {[]string{"region: eu01", "region: eu09"}, 1, []string{"-:6:11: Secret default/credentials: stringData.region: region eu09 is not there"}},
		"no such region of class":   {with("region: eu09"), 1, []string{"-:20:11: MachineClass default/worker: providerSpec.region: region eu09 is not there"}},
		"zone of another region":    {with("availabilityZone: eu02-1"), 1, []string{`providerSpec.availabilityZone: zone "eu02-1" is not there; region eu01 has eu01-1, eu01-2, eu01-3, eu01-m`}},
		"zone of the Secret":        {[]string{"region: eu01", "region: eu01-9"}, 1, []string{`zone "eu01-9" is not there`}},
		"no such image":             {[]string{image, "imageId: " + missing}, 1, []string{"-:18:12: MachineClass default/worker: providerSpec.imageId: image " + missing + " is not there"}},
		"image is not ready":        {[]string{image, "imageId: 30000000-0000-4000-8000-00000000000c"}, 1, []string{`is in state "CREATING"; must be AVAILABLE`}},
		"disk too small":            {[]string{"{size: 20}", "{size: 9}"}, 1, []string{"-:19:22: MachineClass default/worker: providerSpec.bootVolume.size: is 9; must be at least 10, which the image asks for"}},
		"disk without a size":       {[]string{"{size: 20}", "{}"}, 1, []string{"providerSpec.bootVolume.size: is missing; a disk that is made from an image needs a size, for this image at least 10"}},
		"machine type too small":    {[]string{image, "imageId: 30000000-0000-4000-8000-00000000000d", "{size: 20}", "{size: 30}"}, 1, []string{"providerSpec.machineType: machine type c2i.2 has 4096 MB of memory; the image asks for at least 8192 MB"}},
		"nodeTemplate is right":     {template(), 0, nil},
		"it has less":               {template("cpu: 2", "cpu: 1900m", "4Gi", "3500Mi"), 0, nil},
		"more CPUs":                 {template("cpu: 2", "cpu: 2001m"), 1, []string{"-:16:32: MachineClass default/worker: nodeTemplate.capacity.cpu: is 2001m; must be at most 2: machine type c2i.2 has 2 vCPUs"}},
		"more memory":               {template("4Gi", "4097Mi"), 1, []string{"nodeTemplate.capacity.memory: is 4097Mi; must be at most 4Gi: machine type c2i.2 has 4096 MB of memory"}},
		"another instanceType":      {template("c2i.2", "c2i.4"), 1, []string{`nodeTemplate.instanceType: is "c2i.4"; must be "c2i.2", the machineType of the servers`}},
		"another region":            {template("region: eu01", "region: eu02"), 1, []string{`nodeTemplate.region: is "eu02"; must be "eu01", the region of the servers`}},
		"no zone of the region":     {template("eu01-1", "eu02-1"), 1, []string{`nodeTemplate.zone: zone "eu02-1" is not there; region eu01 has eu01-1, eu01-2, eu01-3, eu01-m`}},
		"another zone":              {append(template(), with("availabilityZone: eu01-2")...), 1, []string{`nodeTemplate.zone: is "eu01-1"; must be "eu01-2", the availabilityZone of the servers`}},
		"the same zone":             {append(template(), with("availabilityZone: eu01-1")...), 0, nil},
		"architecture differs":      {append(template(), image, arm), 1, []string{`nodeTemplate.architecture: is "amd64"; must be "arm64", that of the image`}},
		"architecture is missing":   {append(template(", architecture: amd64", ""), image, arm), 1, []string{`nodeTemplate.architecture: is missing; must be "arm64", that of the image: cluster-autoscaler takes amd64`}},
		"architecture is the usual": {append(template(", architecture: amd64", ""), image, x86), 0, nil},
		"architecture is the same":  {append(template(), image, x86), 0, nil},
		"image does not tell of it": {template("amd64", "arm64"), 0, nil},
		"no such snapshot":          {source("snapshot", missing, ", size: 20"), 1, []string{"providerSpec.bootVolume.source.id: snapshot " + missing + " is not there"}},
		"snapshot":                  {source("snapshot", iaasmock.DefaultSnapshotID, ""), 0, nil},
		"snapshot is broken":        {source("snapshot", "80000000-0000-4000-8000-00000000000a", ""), 1, []string{`is in state "ERROR"; must be AVAILABLE`}},
		"snapshot larger than disk": {source("snapshot", iaasmock.DefaultSnapshotID, ", size: 19"), 1, []string{"bootVolume.size: is 19; must be at least 20, the size of the snapshot"}},
		"no such boot volume":       {append(source("volume", missing, ""), "replicas: 2", "replicas: 1"), 1, []string{"providerSpec.bootVolume.source.id: volume " + missing + " is not there"}},
		"boot volume":               {append(source("volume", iaasmock.DefaultBootVolumeID, ""), "replicas: 2", "replicas: 1"), 0, nil},
		"no such performance class": {[]string{"{size: 20}", "{size: 20, performanceClass: storage_premium_perf3}"}, 1, []string{"providerSpec.bootVolume.performanceClass: performance class storage_premium_perf3 is not there; did you mean storage_premium_perf"}},
		"performance class":         {[]string{"{size: 20}", "{size: 20, performanceClass: storage_premium_perf2}"}, 0, nil},
		"no such network":           {[]string{"networkId: 20000000-0000-4000-8000-000000000001", "networkId: " + missing}, 1, []string{"providerSpec.networking.networkId: network " + missing + " is not there"}},
		"network of another region": {[]string{"networkId: 20000000-0000-4000-8000-000000000001", "networkId: " + iaasmock.SecondRegionNetworkID}, 1, []string{"is not there"}},
		"no such NIC":               {append(with("networking: {nicIds: ["+iaasmock.DefaultNICID+", "+missing+"]}"), "replicas: 2", "replicas: 1"), 1, []string{"providerSpec.networking.nicIds[1]: NIC " + missing + " is not there"}},
		"no such security group":    {with("securityGroups: [worker, " + missing + "]"), 1, []string{"securityGroups[0]: security group worker is not there; did you mean workers?", "securityGroups[1]: security group " + missing + " is not there"}},
		"security groups":           {with("securityGroups: [workers, 40000000-0000-4000-8000-000000000002]"), 0, nil},
		"security groups of a name": {with("securityGroups: [twins]"), 2, []string{"securityGroups[0]: 2 security groups are called twins"}},
		"no such affinity group":    {with("affinityGroup: " + missing), 1, []string{"providerSpec.affinityGroup: affinity group " + missing + " is not there"}},
		"no such volume":            {append(with("volumes: ["+missing+"]"), "replicas: 2", "replicas: 1"), 1, []string{"providerSpec.volumes[0]: volume " + missing + " is not there"}},
		"no such key pair":          {with("keypairName: nobody"), 1, []string{"providerSpec.keypairName: key pair nobody of these credentials (key pairs belong to credentials, not to projects) is not there; make it with these credentials, or name one of theirs\n"}},
		"service account":           {with("serviceAccountMails: [a@sa.stackit.cloud]"), 2, []string{"providerSpec.serviceAccountMails[0]: whether service account a@sa.stackit.cloud is there and may be used cannot be told"}},
		"wrong already":             {[]string{image, "imageId: nowhere", "c2i.2", "'-'"}, 1, []string{`imageId: is "nowhere"`, `machineType: is "-"`}},
		"Secret is not given":       {[]string{"metadata: {name: credentials}", "metadata: {name: other}"}, 2, []string{"MachineClass default/worker: could not be checked online: its Secret is not given"}},
		"key cannot be used":        {[]string{`serviceAccountKey: "`, `serviceAccountKey: "x`}, 1, []string{"could not be checked online: Secret default/credentials: the service-account key is not the JSON"}},
		"no class":                  {without(goodClass), 2, []string{"online: the API was not asked: there is no MachineClass"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: []string{"validate", "-f", "-", "--online"}, env: env, stdin: manifests(t, cloud, row.changes...)}.run(t)
			got.expect(t, row.code, row.says...)
		})
	}
}

func TestValidateOnlineSamples(t *testing.T) {
	t.Parallel()
	cloud, env := startMock(t)
	folder := filepath.Join(t.TempDir(), "samples")
	copySamples(t, cloud, folder)
	cloud.ResetCalls()
	got := invocation{args: []string{"validate", "-f", folder, "--online", "--replicas", "3", "-o", "json"}, env: env}.run(t)
	if got.code != 2 {
		t.Errorf("exit code %d, want 2 for the service account, which cannot be told", got.code)
	}
	expectGolden(t, "validate-online.json", strings.ReplaceAll(got.stdout, folder, "samples"))
	counts := cloud.CallCounts()
	delete(counts, "Token")
	if most := slices.Max(slices.Collect(maps.Values(counts))); most != 1 || len(counts) != 9 {
		t.Errorf("calls %v, want 9 different ones, each once", counts)
	}
	verbose := invocation{args: []string{"validate", "-f", folder, "--online", "-v=1"}, env: env}.run(t)
	verbose.expect(t, 2, "zone eu01-1 is there; which machine types it has, the API does not tell", "key pair default-keypair of these credentials")
}

func TestValidateOnlineWhatIsAttached(t *testing.T) {
	t.Parallel()
	cloud, env := startMock(t)
	text := manifests(t, cloud, "  labels: {", "  networking: {nicIds: [70000000-0000-4000-8000-000000000001]}\n  volumes: [60000000-0000-4000-8000-000000000001]\n  labels: {", "replicas: 2", "replicas: 1")
	id := createServer(t, cloud, map[string]string{provider.StackitMachineLabel: "machine", provider.StackitMachineClassLabel: "worker", "kubernetes.io/cluster": "one"})
	run := invocation{args: []string{"validate", "-f", "-", "--online", "-v=1"}, env: env, stdin: text}
	run.run(t).expect(t, 0, "NIC 70000000-0000-4000-8000-000000000001 is attached to server "+id+" of this class", "volume 60000000-0000-4000-8000-000000000001 is attached to server "+id+" of this class")
	run.stdin = strings.Replace(text, "kubernetes.io/cluster: one", "kubernetes.io/cluster: two", 1)
	run.run(t).expect(t, 1,
		"providerSpec.networking.nicIds[0]: NIC 70000000-0000-4000-8000-000000000001 is attached to server "+id+", which is none of this class's; detach it",
		"providerSpec.volumes[0]: volume 60000000-0000-4000-8000-000000000001 is attached to server "+id)
	defer cloud.Inject(iaasmock.Fault{Operation: "GetServer", Status: 403})()
	run.run(t).expect(t, 2, "grant it the permission iaas.server.get")
}

// createServer makes a server with the default NIC and volume, by the driver's client.
func createServer(t *testing.T, cloud *iaasmock.Cloud, labels map[string]string) string {
	t.Helper()
	api := httptest.NewServer(cloud)
	defer api.Close()
	key := keyOf(t, cloud)
	sessions := &spi.PluginSPIImpl{Config: spi.Config{Endpoint: api.URL, TokenURL: api.URL + "/token"}}
	session, err := sessions.Session(spi.Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: string(key)})
	if err != nil {
		t.Fatal(err)
	}
	size := int64(20)
	server, err := provider.NewClient(session, iaasmock.DefaultRegion).CreateServer(t.Context(), &provider.ServerRequest{
		Name: "machine", Labels: labels, Spec: &apis.ProviderSpec{
			MachineType: iaasmock.DefaultMachineType, Networking: &apis.Networking{NICIDs: []string{iaasmock.DefaultNICID}},
			Volumes:    []string{iaasmock.DefaultVolumeID},
			BootVolume: &apis.BootVolume{Size: &size, Source: &apis.BootVolumeSource{Type: apis.SourceImage, ID: iaasmock.DefaultImageID}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return server.ID
}

func TestValidateOnlineQuota(t *testing.T) {
	t.Parallel()
	// What three machines of c2i.2 with 20 GB take.
	exact := iaasmock.Quota{VCPUs: 6, RAM: 12288, Volumes: 5, Gigabytes: 120, NICs: 4, Snapshots: 1}
	for name, row := range map[string]struct {
		change  func(*iaasmock.Quota)
		changes []string
		code    int
		says    []string
	}{
		"just enough":       {func(*iaasmock.Quota) {}, nil, 0, nil},
		"no limit":          {func(q *iaasmock.Quota) { q.VCPUs = -1 }, nil, 0, nil},
		"vcpu":              {func(q *iaasmock.Quota) { q.VCPUs-- }, nil, 1, []string{"quota of project 10000000-0000-4000-8000-000000000001 in eu01: vcpu: 6 are needed, 5 of 5 are left; raise the quota"}},
		"ram":               {func(q *iaasmock.Quota) { q.RAM-- }, nil, 1, []string{": ram: 12288 MB are needed, 12287 of 12287 are left"}},
		"volumes":           {func(q *iaasmock.Quota) { q.Volumes-- }, nil, 1, []string{": volumes: 3 are needed, 2 of 4 are left"}},
		"gigabytes":         {func(q *iaasmock.Quota) { q.Gigabytes-- }, nil, 1, []string{": gigabytes: 60 GB are needed, 59 of 119 are left"}},
		"nics":              {func(q *iaasmock.Quota) { q.NICs-- }, nil, 1, []string{": nics: 3 are needed, 2 of 3 are left"}},
		"existing NICs":     {func(q *iaasmock.Quota) { q.NICs = 0 }, []string{"  labels: {", "  networking: {nicIds: [" + iaasmock.DefaultNICID + "]}\n  labels: {", "replicas: 2", "replicas: 1"}, 0, nil},
		"existing disk":     {func(q *iaasmock.Quota) { q.Volumes, q.Gigabytes = 0, 0 }, []string{"  imageId: 30000000-0000-4000-8000-000000000001\n  bootVolume: {size: 20}", "  bootVolume: {source: {type: volume, id: " + iaasmock.DefaultBootVolumeID + "}}", "replicas: 2", "replicas: 1"}, 0, nil},
		"two classes":       {func(*iaasmock.Quota) {}, []string{goodClass, goodClass + strings.Replace(goodClass, "name: worker", "name: second", 1)}, 1, []string{": vcpu: 12 are needed, 6 of 6 are left"}},
		"type is not there": {func(*iaasmock.Quota) {}, []string{"c2i.2", "c2i.9"}, 1, []string{"what machines of MachineClass default/worker take could not be told"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			quota := exact
			row.change(&quota)
			cloud, env := startMock(t, iaasmock.WithQuota(quota))
			got := invocation{args: []string{"validate", "-f", "-", "--online", "--replicas=3"}, env: env, stdin: manifests(t, cloud, row.changes...)}.run(t)
			got.expect(t, row.code, row.says...)
		})
	}
}

// TestValidateOnlineWhatTheAPIDoesNotTell forbids every read, and lets two of them fail in
// the other ways of an API.
func TestValidateOnlineWhatTheAPIDoesNotTell(t *testing.T) {
	t.Parallel()
	for operation, row := range map[string]struct{ field, permission string }{
		"ListMachineTypes":             {"providerSpec.machineType", "iaas.machine-type.list"},
		"GetImage":                     {"providerSpec.imageId", "iaas.image.get"},
		"GetNetwork":                   {"providerSpec.networking.networkId", "iaas.network.get"},
		"ListSecurityGroups":           {"providerSpec.securityGroups[0]", "iaas.security-group.list"},
		"GetSecurityGroup":             {"providerSpec.securityGroups[1]", "iaas.security-group.get"},
		"GetAffinityGroup":             {"providerSpec.affinityGroup", "iaas.affinity-group.get"},
		"ListVolumePerformanceClasses": {"providerSpec.bootVolume.performanceClass", "iaas.volume-performance-class.list"},
		"GetVolume":                    {"providerSpec.volumes[0]", "iaas.volume.get"},
		"ListQuotas":                   {"quota of project", "iaas.quota.get"},
		"GetKeyPair":                   {"providerSpec.keypairName", ""},
		"ListAvailabilityZones":        {"providerSpec.availabilityZone", ""},
	} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			cloud, env := startMock(t)
			text := manifests(t, cloud, "{size: 20}", "{size: 20, performanceClass: storage_premium_perf1}", "  labels: {",
				"  securityGroups: [workers, 40000000-0000-4000-8000-000000000002]\n  affinityGroup: 50000000-0000-4000-8000-000000000001\n"+
					"  volumes: [60000000-0000-4000-8000-000000000001]\n  keypairName: default-keypair\n  labels: {", "replicas: 2", "replicas: 1")
			for _, fault := range []struct {
				iaasmock.Fault
				says string
			}{
				{iaasmock.Fault{Status: 403}, row.permission},
				{iaasmock.Fault{Status: 500}, "status 500"},
				{iaasmock.Fault{Status: 200, Body: "null"}, "could not be checked: "},
				{iaasmock.Fault{Status: 200, Body: "{}"}, "could not be checked: "},
				{iaasmock.Fault{Status: 404, Body: "<html>", ContentType: "text/html"}, "status 404"},
				{iaasmock.Fault{Status: 404, Body: `{"code":404,"msg":"project not found"}`}, "project not found"},
			} {
				if fault.Status != 403 && operation != "GetImage" && operation != "ListMachineTypes" {
					continue // They end in the same place.
				}
				fault.Operation = operation
				remove := cloud.Inject(fault.Fault)
				got := invocation{args: []string{"validate", "-f", "-", "--online", "--replicas=1"}, env: env, stdin: text}.run(t)
				remove()
				got.expect(t, 2, row.field, fault.says)
			}
		})
	}
}

func TestValidateOnlineOutage(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		says  string
	}{
		"key is refused":       {iaasmock.Fault{Operation: "Token", Status: 401}, string(provider.ReasonCredentialsRefused)},
		"API refuses":          {iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: 401}, string(provider.ReasonCredentialsRefused)},
		"token endpoint fails": {iaasmock.Fault{Operation: "Token", Status: 500}, "could not be checked online any further"},
		"no answers":           {iaasmock.Fault{Operation: iaasmock.OperationIaaS, DropBefore: true}, "could not be checked online any further"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloud, env := startMock(t)
			text := manifests(t, cloud, goodClass, goodClass+strings.Replace(goodClass, "name: worker", "name: second", 1))
			cloud.Inject(row.fault)
			got := invocation{args: []string{"validate", "-f", "-", "--online"}, env: env, stdin: text}.run(t)
			got.expect(t, 2, row.says)
			if lines := strings.Count(got.stdout, "\n"); lines != 2 {
				t.Errorf("got %d lines, want one a class:\n%s", lines, got.stdout)
			}
			if others := cloud.CallCounts(); others["ListMachineTypes"]+others["GetImage"] > 0 {
				t.Errorf("calls %v, want none after the first that fails so", others)
			}
		})
	}
}

func TestValidateOnlineWithCredentialsOfFlags(t *testing.T) {
	cloud, env := startMock(t)
	key := keyOf(t, cloud)
	path := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(path, key, 0o600); err != nil {
		t.Fatal(err)
	}
	class := strings.Replace(goodClass, "c2i.2", "c2i.3", 1)
	for name, row := range map[string]struct{ args, env []string }{
		"flags":       {[]string{"--project-id", iaasmock.DefaultProjectID, "--region", "eu01", "--service-account-key-path", path}, nil},
		"environment": {nil, []string{"STACKIT_PROJECT_ID=" + iaasmock.DefaultProjectID, "STACKIT_REGION=eu01", "STACKIT_SERVICE_ACCOUNT_KEY_PATH=" + path}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: append([]string{"validate", "-f", "-", "--online"}, row.args...), env: append(row.env, env...), stdin: class}.run(t)
			got.expect(t, 1, "Secret default/credentials is not given", "machine type c2i.3 is not there")
		})
	}
}
