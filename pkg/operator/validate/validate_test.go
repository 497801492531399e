// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"encoding/base64"
	"flag"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/workload"
)

// Rows mostly wait for the limit of reads.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// key is one that a mock accepts after registered: making one is slow.
var key = sync.OnceValues(func() ([]byte, error) {
	return iaasmock.New().NewServiceAccountKey(iaasmock.DefaultProjectID)
})

// good is testdata/good.yaml with a key. Pairs of changes replace text.
func good(t *testing.T, changes ...string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	key, err := key()
	if err != nil {
		t.Fatal(err)
	}
	return changed(t, strings.Replace(string(text), "KEY", strconv.Quote(string(key)), 1), changes...)
}

func changed(t *testing.T, text string, changes ...string) string {
	t.Helper()
	for i := 0; i < len(changes); i += 2 {
		after := strings.Replace(text, changes[i], changes[i+1], 1)
		if after == text {
			t.Fatalf("%q does not exist", changes[i])
		}
		text = after
	}
	return text
}

// class is the MachineClass of good.yaml.
func class(t *testing.T) string { return strings.Split(good(t), "---\n")[1] + "---\n" }

// offline reaches no cluster and no API.
func offline() *account.Access {
	return &account.Access{Sessions: &spi.PluginSPIImpl{}, Namespace: "default", Clock: clock.RealClock{}}
}

// online reaches the mock with the key.
func online(t *testing.T, options ...iaasmock.Option) (*account.Access, *iaasmock.Cloud) {
	t.Helper()
	cloud := iaasmock.New(options...)
	key, err := key()
	if err != nil {
		t.Fatal(err)
	}
	if err := cloud.RegisterServiceAccountKey(iaasmock.DefaultProjectID, key); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	return &account.Access{
		Sessions:  &spi.PluginSPIImpl{Config: spi.Config{Endpoint: server.URL, TokenURL: server.URL + "/oauth/v2/token"}},
		Namespace: "default", ReadTimeout: 30 * time.Second, Clock: clock.RealClock{},
	}, cloud
}

// run checks a text as standard input.
func run(t *testing.T, access *account.Access, text string, options Options) *Result {
	t.Helper()
	options.Stdin, options.Files = strings.NewReader(text), resource.FilenameOptions{Filenames: []string{"-"}}
	result, err := Run(t.Context(), access, options)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// expect wants an exit code and these texts among the findings, and no secret.
func expect(t *testing.T, result *Result, code int, says ...string) {
	t.Helper()
	var lines []string
	for _, found := range result.Findings {
		lines = append(lines, found.String())
	}
	text := strings.Join(lines, "\n") + "\n"
	if got := result.Findings.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	for _, want := range says {
		if !strings.Contains(text, want) {
			t.Errorf("no finding has %q", want)
		}
	}
	for _, secret := range []string{"the-canary", "PRIVATE KEY", "eyJ"} {
		if strings.Contains(text, secret) {
			t.Errorf("a secret is told: %q", secret)
		}
	}
	if t.Failed() {
		t.Logf("findings:\n%s", text)
	}
}

// row is a text with changes, and what is found in it.
type row struct {
	changes []string
	code    int
	says    []string
}

// goodTemplate is the nodeTemplate of good.yaml.
const goodTemplate = "nodeTemplate: {capacity: {cpu: 2, gpu: 0, memory: 4Gi}, " +
	"instanceType: c2i.2, region: eu01, zone: eu01-1, architecture: amd64}"

// longName has 60 characters.
var longName = strings.Repeat("abcde-", 9) + "abcdef"

func TestFindings(t *testing.T) {
	const secretRef = "secretRef: {name: credentials, namespace: default}"
	credentialsRef := "credentialsSecretRef: {name: more, namespace: default}\nproviderSpec:"
	more := "apiVersion: v1\nkind: Secret\nmetadata: {name: more}\nstringData: {region: eu02}\n---\n"
	wrong := strings.Replace(more, "region: eu02", "projectId: x", 1)
	tomorrow := time.Now().Add(24 * time.Hour).Format(time.RFC3339)
	nodeTemplate := func(template string) []string {
		return []string{goodTemplate, "nodeTemplate: " + template}
	}
	// data puts a value below data, instead of a line below stringData.
	data := func(value, line string) []string {
		return []string{"stringData:\n", "data: {" + value + "}\nstringData:\n", line, ""}
	}
	const ofUserData = "  userData: \"#cloud-config\\n# the-canary\"\n"
	const server = "70000000-0000-4000-8000-000000000001"
	const isInvalid = "is invalid: must be stackit://<projectId>/<serverId>"
	provided := func(id string) []string {
		return []string{"spec: {class: {kind: MachineClass", "spec: {providerID: '" + id + "', class: {kind: MachineClass"}
	}
	fallbacks := func(items string) []string {
		const boot = "  bootVolume: {size: 20}\n"
		return []string{boot, boot + "  fallbacks: [" + items + "]\n"}
	}
	for name, row := range map[string]row{
		"nothing": {nil, 0, nil},
		"no cluster label": {[]string{"  labels: {kubernetes.io/cluster: one}\n", ""},
			1, []string{"providerSpec.labels: has no cluster label", "deleted as orphans"}},
		"region in another case": {[]string{"  machineType:", "  Region: eu01\n  machineType:"},
			1,
			[]string{`MachineClass default/worker: providerSpec.region: Invalid value: is spelled "Region": must be "region"`}},
		"label that is a number": {[]string{"{kubernetes.io/cluster: one}", "{a: b, kubernetes.io/cluster: 1}"}, 1,
			[]string{"-:20:11: MachineClass default/worker: providerSpec.labels: Invalid value: " +
				"json: cannot unmarshal number into Go struct field ProviderSpec.labels of type string"}},
		"labels in another case": {[]string{"  labels:", "  Labels:"},
			1,
			[]string{`MachineClass default/worker: providerSpec.labels: Invalid value: is spelled "Labels": must be "labels"`}},
		"userData of the class that is no cloud-init": {
			[]string{"  bootVolume: {size: 20}\n", "  bootVolume: {size: 20}\n  userData: hello\n"},
			0, []string{"MachineClass default/worker: providerSpec.userData: does not begin as cloud-init"}},
		"userData of the class and of the Secret alike": {
			[]string{"#cloud-config\\n# the-canary", "<<MACHINE_NAME>>", "  bootVolume: {size: 20}\n",
				"  bootVolume: {size: 20}\n  userData: <<MACHINE_NAME>>\n"},
			0, []string{"MachineClass default/worker: providerSpec.userData: does not begin as cloud-init"}},
		"image alone": {[]string{"  bootVolume: {size: 20}\n", ""},
			0, []string{"-:18:12: MachineClass default/worker: providerSpec.imageId: is set without a bootVolume"}},
		"a placeholder as region": {[]string{"region: eu01", "region: replace-me"}, 1,
			[]string{"Secret default/credentials: stringData.region: Invalid value: must be a region such as eu01"}},
		"a zone as region": {[]string{"  machineType:", "  region: eu01-1\n  machineType:"}, 0,
			[]string{"MachineClass default/worker: providerSpec.region: is the name of a zone: its region is eu01; " +
				"a zone belongs into availabilityZone"}},
		"zone of another region": {[]string{"  machineType:", "  availabilityZone: eu02-1\n  machineType:"}, 0,
			[]string{"MachineClass default/worker: providerSpec.availabilityZone: " +
				"eu02-1 is a zone of region eu02, the servers are in region eu01"}},
		"fallback to another region": {fallbacks("{machineType: a}, {availabilityZone: eu02-m}"), 0,
			[]string{"providerSpec.fallbacks[1].availabilityZone: eu02-m is a zone of region eu02"}},
		"four fallbacks": {fallbacks("{machineType: a}, {machineType: b}, {machineType: c}, {machineType: d}"),
			0, []string{"-:20:14: MachineClass default/worker: providerSpec.fallbacks: " +
				"has 4 entries: each may take as long as a boot"}},
		"fallback to another zone": {fallbacks("{availabilityZone: eu01-2}"),
			0, []string{"MachineClass default/worker: providerSpec.fallbacks[0].availabilityZone: " +
				"is eu01-2, nodeTemplate.zone is eu01-1"}},
		"fallback without a choice": {fallbacks("{}"),
			1, []string{"MachineClass default/worker: providerSpec.fallbacks[0]: Required value: " +
				"set machineType, availabilityZone or both"}},
		"two wrong types": {[]string{"metadata: {name: single}", "metadata: {name: single, labels: {a: 1, b: [2]}}"},
			1,
			[]string{"-:25:38: Machine default/single: metadata.labels.a: Invalid value: json: cannot unmarshal number"}},
		"quantity": {
			nodeTemplate("{capacity: {cpu: x, gpu: 0, memory: 4Gi}, instanceType: a, region: b, zone: c}"),
			1, []string{"-:21:32: MachineClass default/worker: nodeTemplate.capacity.cpu: " +
				"Invalid value: quantities must match"}},
		"duration in days": {
			[]string{"spec: {class: {kind: MachineClass", "spec: {drainTimeout: 2d, class: {kind: MachineClass"}, 1,
			[]string{"-:26:22: Machine default/single: spec.drainTimeout: Invalid value: time: unknown unit"}},
		"no nodeTemplate": {[]string{goodTemplate, ""}, 0,
			[]string{"-:11:1: MachineClass default/worker: nodeTemplate: is missing"}},
		"nodeTemplate lacks things": {nodeTemplate("{capacity: {cpu: 1}, instanceType: a}"),
			1, []string{"nodeTemplate.capacity.gpu: Required value: ", "nodeTemplate.capacity.memory: Required value: ",
				"nodeTemplate.region: Required value: ", "nodeTemplate.zone: Required value: ",
				`nodeTemplate.instanceType: Invalid value: "a": must be "c2i.2"`}},
		"nodeTemplate without values": {
			nodeTemplate("{capacity: {cpu: 2, gpu: , memory: ~}, instanceType: c2i.2, region: eu01, zone: }"), 1,
			[]string{"-:21:40: MachineClass default/worker: nodeTemplate.capacity.gpu: Required value: ",
				"nodeTemplate.capacity.memory: Required value: ", "nodeTemplate.zone: Required value: "}},

		"Secret is not in the files": {[]string{"metadata: {name: credentials}", "metadata: {name: other}"},
			2, []string{"-:15:12: MachineClass default/worker: secretRef: Secret default/credentials is not in the files"}},
		"second Secret is not in the files": {[]string{"providerSpec:", credentialsRef},
			2, []string{"credentialsSecretRef: Secret default/more is not in the files"}},
		"no Secret is named": {[]string{secretRef + "\n", ""},
			1, []string{"MachineClass default/worker: secretRef: Required value: "}},
		"Secret of another namespace": {[]string{secretRef, "secretRef: {name: credentials, namespace: other}"},
			1, []string{`secretRef.namespace: Invalid value: "other": must be "default"`,
				"Secret other/credentials is not in the files"}},
		"reference without namespace": {[]string{secretRef, "secretRef: {name: credentials}"},
			1, []string{`secretRef.namespace: Invalid value: "": must be "default"`}},
		"reference without name": {[]string{secretRef, "secretRef: {namespace: default}"},
			1, []string{"secretRef.name: Required value: "}},
		"second Secret wins": {[]string{"providerSpec:", credentialsRef, "---\n", "---\n" + wrong},
			1, []string{"-:14:25: Secret default/more: stringData.projectId: Invalid value: must be a UUID"}},
		"neither Secret has userData": {[]string{"providerSpec:", credentialsRef, "---\n", "---\n" + more, "userData:",
			"userdata:"},
			1, []string{"Secret default/more: stringData.userData: Required value: "}},
		"empty userData": {[]string{"userData: \"#cloud-config\\n# the-canary\"", `userData: ""`}, 0, nil},
		"userData that is a comment": {[]string{"userData: \"#cloud-config\\n# the-canary\"", `userData: #cloud-config`}, 0,
			[]string{"-:8:12: Secret default/credentials: stringData.userData: has no value, so servers get no user data"}},
		"key is no JSON": {[]string{`serviceAccountKey: "{`, `serviceAccountKey: "the-canary {`},
			1, []string{"-:9:22: Secret default/credentials: stringData.serviceAccountKey: " +
				"Invalid value: the service-account key is not the JSON"}},
		"key in base64": {[]string{`serviceAccountKey: "{`, `serviceAccountKey: "eyJ0aGUiOiJjYW5hcnkifQ==" # {`},
			1, []string{"Invalid value: the service-account key is encoded in base64: use the JSON itself"}},
		"key without its private part": {[]string{`\"privateKey\"`, `\"other\"`},
			1, []string{"lacks credentials.privateKey: use the whole file"}},
		"key of another host": {[]string{"https://accounts.stackit.cloud/oauth", "https://accounts.example/oauth"},
			1, []string{"credentials.tokenEndpoint must be https://<host>/<path>"}},
		"key that is switched off": {[]string{`\"active\": true`, `\"active\": false`},
			1, []string{"-:9:22: Secret default/credentials: stringData.serviceAccountKey: " +
				"the key is inactive according to its file; activate it"}},
		"key that expired": {[]string{`\"active\": true`, `\"active\": true, \"validUntil\": \"2026-01-01T00:00:00Z\"`},
			1, []string{"stringData.serviceAccountKey: the key expired at 2026-01-01 00:00:00 UTC; create a new key"}},
		"key that expires soon": {[]string{`\"active\": true`, `\"active\": true, \"validUntil\": \"` + tomorrow + `\"`},
			0, []string{"stringData.serviceAccountKey: the key expires at ", "create a new key"}},
		"key of another project": {
			[]string{`\"projectId\": \"` + iaasmock.DefaultProjectID, `\"projectId\": \"` + iaasmock.SecondProjectID},
			0, []string{`stringData.serviceAccountKey: the key belongs to a service account of another project, "` +
				iaasmock.SecondProjectID + `"`}},
		"key of another project, and none to compare": {[]string{"projectId: 1", "projectId: x1"}, 1,
			[]string{"stringData.projectId: Invalid value"}},
		"key that expired, in Gardener's spelling": {[]string{"serviceAccountKey:", "serviceaccount.json:",
			`\"active\": true`, `\"active\": true, \"validUntil\": \"2026-01-01T00:00:00Z\"`},
			1, []string{"stringData[serviceaccount.json]: the key expired at "}},
		"key of 2025": {[]string{`\"projectId\": \"`, `\"another\": \"`, `\"tokenEndpoint\"`, `\"other\"`}, 0, nil},
		"data that is not base64": {[]string{"stringData:\n", "data: {region: ü}\nstringData:\n"},
			1, []string{"-:4:16: Secret default/credentials: data.region: Invalid value: illegal base64 data"}},
		"data that is plain text": {data("region: eu01", "  region: eu01\n"), 1,
			[]string{"-:4:16: Secret default/credentials: data.region: is not text: must be base64 of text, " +
				"or plain text in stringData"}},
		"userData that is plain text in data": {data("userData: kubeadmjoin1", ofUserData), 0,
			[]string{"Secret default/credentials: data.userData: is not text: must be base64 of text"}},
		"userData that is compressed": {data("userData: H4sIAAAA", ofUserData), 0,
			[]string{"Secret default/credentials: data.userData: is compressed with gzip"}},
		"data of another program": {[]string{"stringData:\n", "data: {keystore: /+8A}\nstringData:\n"}, 0, nil},
		"data instead of text": {[]string{"stringData:\n", "data: {userData: aGVsbG8=}\nstringData:\n",
			"  userData: \"#cloud-config\\n# the-canary\"\n", ""}, 0, nil},
		"region of the Secret": {[]string{"region: eu01", "region: the-canary/"},
			1, []string{"-:6:11: Secret default/credentials: stringData.region: Invalid value: must be a region such as eu01"}},
		"network is nowhere": {[]string{"  networkId: 20000000-0000-4000-8000-000000000001\n", ""},
			1, []string{"providerSpec.networking: Required value: set networkId or nicIds"}},
		"key that lost its quotes": {[]string{"stringData:\n", strings.Repeat("M", 80) + "the-canary: x\nstringData:\n"}, 1,
			[]string{"-:4:93: Secret default/credentials: " + strings.Repeat("M", 80) + "...: is not a known field"}},
		"Secret of no class": {[]string{"---\n", "---\n" + wrong}, 0, nil},

		"name of a class is too long": {[]string{"name: worker}", "name: " + longName + "-abcd}"},
			1, []string{"becomes a label of the server: must be 1 to 63"}},
		"name of a Machine is too long": {[]string{"name: single}", "name: " + longName + "-abcd}"},
			1, []string{"-:25:18: Machine default/" + longName + "-abcd: metadata.name: Invalid value",
				"must be 1 to 63 letters"}},
		"name of a class in another case": {[]string{"{name: worker}", "{name: Worker}", "name: worker}}", "name: Worker}}",
			"name: worker}}", "name: Worker}}"}, 1, []string{`-:13:18: MachineClass default/Worker: metadata.name: ` +
			`Invalid value: "Worker": a lowercase RFC 1123 subdomain must consist of`}},
		"name of a class with an underscore": {[]string{"{name: worker}", "{name: my_class}"}, 1,
			[]string{`MachineClass default/my_class: metadata.name: Invalid value: "my_class": a lowercase`}},
		"name of a Machine in another case": {[]string{"name: single}", "name: Single}"}, 1,
			[]string{`Machine default/Single: metadata.name: Invalid value: "Single": a lowercase`}},
		"name of a MachineDeployment in another case": {[]string{"name: pool}", "name: Pool}"}, 1,
			[]string{`MachineDeployment default/Pool: metadata.name: Invalid value: "Pool": a lowercase`}},
		"name of a Secret in another case": {[]string{"metadata: {name: credentials}", "metadata: {name: Credentials}"}, 1,
			[]string{`Secret default/Credentials: metadata.name: Invalid value: "Credentials": a lowercase`}},
		"generated name in another case": {[]string{"name: single}", "generateName: Single-}"}, 1,
			[]string{`Machine default/: metadata.generateName: Invalid value: "Single-": a lowercase`}},
		"name with dots": {[]string{"name: single}", "name: single.example.com}"}, 0, nil},
		"what kubectl gets": {[]string{"metadata: {name: single}\n", `metadata: {name: single, uid: a, resourceVersion: "1",
  managedFields: [{manager: m, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {}}}]}
status: {currentStatus: {phase: Running, lastUpdateTime: "2026-01-01T00:00:00Z"}}
`}, 0, nil},
		"Machine without a name": {[]string{"name: single}", "labels: {pool: a}}"}, 1,
			[]string{"-:25:11: Machine default/: metadata.name: Required value: set it, or generateName"}},
		"MachineDeployment with an empty name": {[]string{"name: pool}", `name: ""}`}, 1,
			[]string{"MachineDeployment default/: metadata.name: Required value: set it, or generateName"}},
		"Secret without a name": {[]string{"metadata: {name: credentials}", "metadata: {}"}, 1,
			[]string{"Secret default/: metadata.name: Required value: set it, or generateName",
				"Secret default/credentials is not in the files"}},
		"name of a Machine is generated": {[]string{"name: single}", "generateName: single-}"}, 0, nil},
		"control characters": {[]string{"name: single}", `name: "sin\e[31mgle\n"}`},
			1, []string{`Machine default/sin?[31mgle: metadata.name: Invalid value: "sin\x1b[31mgle\n"`}},
		"a very long value": {[]string{"machineType: c2i.2", "machineType: " + strings.Repeat("-", 100_000)},
			1, []string{`providerSpec.machineType: Invalid value: "` + strings.Repeat("-", 80) + `...": must be`}},

		"class is not given": {[]string{"name: worker}}\n", "name: other}}\n"},
			2, []string{"-:26:42: Machine default/single: spec.class.name: MachineClass default/other is not in the files"}},
		"ProviderID of another project": {provided("stackit://" + iaasmock.SecondProjectID + "/" + server), 1,
			[]string{"-:26:20: Machine default/single: spec.providerID: ", "belongs to project " + iaasmock.SecondProjectID}},
		"ProviderID of a Secret unknown": {append(provided("stackit://"+iaasmock.SecondProjectID+"/"+server),
			"metadata: {name: credentials}", "metadata: {name: other}"), 2, nil},
		"ProviderID of the project":        {provided("stackit://" + iaasmock.DefaultProjectID + "/" + server), 0, nil},
		"ProviderID of a Node":             {provided("stackit://" + server), 0, nil},
		"ProviderID of OpenStack":          {provided("openstack:///RegionOne/" + server), 0, nil},
		"ProviderID of OpenStack's form":   {provided("stackit:///RegionOne/" + server), 1, []string{isInvalid}},
		"ProviderID with an empty project": {provided("stackit:///" + server), 1, []string{isInvalid}},
		"ProviderID without a scheme":      {provided(server), 1, []string{isInvalid}},
		"ProviderID with a slash at the end": {provided("stackit://" + iaasmock.DefaultProjectID + "/" + server + "/"), 1,
			[]string{isInvalid}},
		"ProviderID with an empty project, of a Secret unknown": {append(provided("stackit:///"+server),
			"metadata: {name: credentials}", "metadata: {name: other}"), 1, []string{isInvalid}},
		"ProviderID of a class unknown": {append(provided("stackit:///"+server), "name: worker}}\n", "name: other}}\n"), 1,
			[]string{isInvalid}},
		"ProviderID of another provider": {append(provided("aws:///eu-west-1/i-0"), "name: worker}}\n", "name: other}}\n"),
			2, nil},
		"no class": {[]string{"spec: {class: {kind: MachineClass, name: worker}}", "spec: {}"},
			1, []string{"spec.class.kind: Kind is required", "spec.class.name: Name is required"}},
		"no selector": {[]string{"  selector: {matchLabels: {pool: a}}\n", ""},
			1, []string{"-:32:3: MachineDeployment default/pool: spec.selector: Required value: "}},
		"number of machines in quotes, and none": {[]string{"{maxSurge: 1, maxUnavailable: 0}", `{maxSurge: "1"}`}, 1,
			[]string{"rollingUpdate.maxSurge: must be a whole number, without quotes, or a percentage such as 25%",
				"rollingUpdate.maxUnavailable: must be a whole number, without quotes, or a percentage"}},
		"selector selects all": {[]string{"selector: {matchLabels: {pool: a}}", "selector: {}"},
			1, []string{"spec.selector: selects all Machines"}},
		"selector cannot be used": {
			[]string{"selector: {matchLabels: {pool: a}}", "selector: {matchExpressions: [{key: a, operator: Like}]}"},
			1, []string{"spec.selector: "}},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, run(t, offline(), good(t, row.changes...), Options{}), row.code, row.says...)
		})
	}
}

// Another driver reads the spec and the Secrets of such a class, as in a migration, where they stand beside the new
// classes: only the provider may have to be corrected.
func TestClassOfAnotherProvider(t *testing.T) {
	result := run(t, offline(), good(t, "provider: stackit", "provider: OpenStack", "projectId: 1", "password: 1",
		"providerSpec:\n", "providerSpec:\n  kind: MachineProviderConfig\n  spec: {flavorName: c2i.2}\n",
		"  labels: {kubernetes.io/cluster: one}\n", "", goodTemplate, ""), Options{})
	expect(t, result, 1, `-:14:11: MachineClass default/worker: provider: Unsupported value: "OpenStack"`)
	if len(result.Findings) != 1 {
		t.Errorf("got %v, want one finding: about the provider", result.Findings)
	}
}

// Many errors at once are told in the order of their lines, each once.
func TestManyErrors(t *testing.T) {
	text, err := os.ReadFile("testdata/bad.yaml")
	if err != nil {
		t.Fatal(err)
	}
	result := run(t, offline(), string(text), Options{})
	var lines []string
	for _, found := range result.Findings {
		lines = append(lines, found.String())
	}
	golden, err := os.ReadFile("testdata/bad.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(golden)), "\n"), lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if result.NotChecked["ConfigMap (v1)"] != 1 {
		t.Errorf("not checked: %v", result.NotChecked)
	}
}

// A Secret that SOPS has encrypted is as unreadable as a SealedSecret, and no error.
func TestEncryptedSecret(t *testing.T) {
	result := run(t, offline(), good(t, "kind: Secret\n", "kind: Secret\nsops: {version: 3.9.0}\n"), Options{})
	expect(t, result, 2, "Secret default/credentials is not in the files: its content cannot be checked")
	if result.NotChecked["Secret encrypted by SOPS (v1)"] != 1 {
		t.Errorf("not checked: %v", result.NotChecked)
	}
}

func TestAllowMissingSecret(t *testing.T) {
	noSecret := []string{"metadata: {name: credentials}", "metadata: {name: other}"}
	sops := []string{"region: eu01", `region: "ENC[AES256_GCM,data:Zm9v,iv:YQ==,tag:Yg==,type:str]"`}
	for name, row := range map[string]row{
		"no Secret": {noSecret, 0, []string{"Secret default/credentials is not in the files"}},
		"no Secret, but wrong": {append([]string{"provider: stackit", "provider: aws"}, noSecret...),
			1, []string{`provider: Unsupported value: "aws"`}},
		"Secret encrypted by SOPS": {append([]string{"kind: Secret\n", "kind: Secret\nsops: {version: 3.9.0}\n"},
			sops...), 0, []string{"Secret default/credentials is not in the files"}},
		"SOPS without its block": {sops, 0, []string{"Secret default/credentials is not in the files"}},
		"SOPS with data": {[]string{"stringData:", "data: {a: \"ENC[AES256_GCM,data:Zm9v,type:str]\"}\nstringData:"},
			0, []string{"Secret default/credentials is not in the files"}},
		"no Secret, and no class": {append([]string{"name: worker}}\n", "name: other}}\n"}, noSecret...),
			2, []string{"MachineClass default/other is not in the files"}},
		"placeholder": {[]string{`serviceAccountKey: "{`, `serviceAccountKey: "replace-me {`}, 0,
			[]string{"is a placeholder"}},
		"placeholder in a key that expired": {[]string{`\"privateKey\": \"`, `\"privateKey\": \"replace-me`,
			`\"active\": true`, `\"active\": true, \"validUntil\": \"2026-01-01T00:00:00Z\"`}, 0, []string{"is a placeholder"}},
		"placeholder for a project": {[]string{"projectId: 10000000-0000-4000-8000-000000000001", "projectId: replace-me"},
			0, []string{"stringData.projectId: is a placeholder"}},
		"placeholder for a region": {[]string{"region: eu01", "region: replace-me/"}, 0,
			[]string{"stringData.region: is a placeholder"}},
		"placeholder that looks like a region": {[]string{"region: eu01", "region: replace-me", "  machineType:",
			"  availabilityZone: eu01-1\n  machineType:"}, 0, []string{"stringData.region: is a placeholder"}},
		"no placeholder": {[]string{`serviceAccountKey: "{`, `serviceAccountKey: "x {`}, 1,
			[]string{"the service-account key is not the JSON"}},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, run(t, offline(), good(t, row.changes...), Options{AllowMissingSecret: true}), row.code, row.says...)
		})
	}
}

// The Secret of --secret takes the place of a class's own.
func TestNamedSecret(t *testing.T) {
	access := offline()
	access.SecretName = "other"
	expect(t, run(t, access, good(t, "metadata: {name: credentials}", "metadata: {name: other}"), Options{}), 0)
	rig := testrig.New(t) // the Secret of its cluster
	rig.MakeClusters()
	rig.Access.SecretName = "credentials"
	text := good(t, "metadata: {name: credentials}", "metadata: {name: other}", "namespace: default",
		"namespace: "+testrig.Namespace)
	expect(t, run(t, rig.Access, text, Options{}), 0)
	options := Options{Stdin: strings.NewReader(good(t)), Files: resource.FilenameOptions{Filenames: []string{"-"}}}
	if result, err := Run(t.Context(), access, options); err == nil {
		t.Errorf("got %v, want an error: the Secret is nowhere", result.Findings)
	}
}

func TestIdentity(t *testing.T) {
	issuer, err := workload.NewIssuer()
	if err != nil {
		t.Fatal(err)
	}
	token := func(lifetime time.Duration) string {
		text, err := issuer.Token(time.Now().Add(lifetime), nil)
		if err != nil {
			t.Fatal(err)
		}
		return "\n  token: " + text
	}
	const mail = "serviceAccountEmail: a@b.c"
	for name, row := range map[string]struct {
		fields string
		code   int
		says   string
	}{
		"token": {mail + token(time.Hour), 0, ""},
		"expired token": {mail + token(-time.Hour), 1,
			"stringData.token: Invalid value: the workload identity's token expired at "},
		"no account": {strings.TrimSpace(token(time.Hour)), 1,
			"stringData.serviceAccountEmail: Required value: must be the email address"},
		"no token": {mail, 1,
			"stringData.token: Required value: must be the workload identity's token"},
		"nothing": {"a: b", 1,
			"serviceAccountKey: Required value: must be a service account key in JSON; or set serviceAccountEmail and token"},
		"key, too": {"serviceAccountKey: '{}'\n  " + mail + token(time.Hour),
			1, "stringData.token: Forbidden: must not be set beside serviceAccountKey"},
	} {
		t.Run(name, func(t *testing.T) {
			text, start := good(t), strings.Index(good(t), "serviceAccountKey:")
			end := start + strings.Index(text[start:], "\n")
			text = text[:start] + row.fields + text[end:]
			expect(t, run(t, offline(), text, Options{}), row.code, row.says)
		})
	}
}

// User data that cannot work makes a server that never joins, and nobody is told why.
func TestUserDataHints(t *testing.T) {
	const good = "#cloud-config\nhostname: <<MACHINE_NAME>>\nruncmd: [[kubeadm, join, --token=<<BOOTSTRAP_TOKEN>>]]\n"
	const asText, oneLine = `has \n as text instead of line breaks`, "has no second line"
	const notJSON, twoDocuments = "is not JSON: Ignition cannot read it", "has a second YAML document"
	encode := base64.StdEncoding.EncodeToString
	literal := strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace
	for name, row := range map[string]struct{ text, secret, class string }{
		"cloud-config": {good, "", "which the manager replaces only in a Secret's userData"},
		"a script":     {"#!/bin/bash\ncat <<EOF\n<<-EOF\nEOF\n", "", ""},
		"Ignition":     {`{"ignition": {"version": "3.4.0"}}`, "", ""},
		"MIME":         {"Content-Type: multipart/mixed; boundary=\"b\"\n\n--b\n", "", ""},
		"nothing":      {" \n", "", ""},
		"base64":       {encode([]byte(good)), "is encoded in base64", "is encoded in base64"},
		"base64 in lines": {encode([]byte(good))[:76] + "\n" + encode([]byte(good))[76:], "is encoded in base64",
			"is encoded in base64"},
		"gzip in base64":        {encode([]byte("\x1f\x8b\x08\x00")), "is encoded in base64", "is encoded in base64"},
		"Windows":               {"#!/bin/bash\r\nkubeadm join\r\n", "Windows line endings", "Windows line endings"},
		"cloud-config, Windows": {"#cloud-config\r\nhostname: a\r\n", "", ""},
		"a byte order mark":     {"\ufeff" + good, "byte order mark", "byte order mark"},
		"indented": {"\n  #cloud-config\nhostname: a\n", "has whitespace before its first line",
			"has whitespace before"},
		"no header":     {"hostname: s3cr3t\n", "does not begin as cloud-init or Ignition expects", "does not begin"},
		"a blank in it": {"# cloud-config\nhostname: a\n", "does not begin as cloud-init", "does not begin as"},
		"a kubeconfig":  {"apiVersion: v1\nkind: Config\n", "does not begin as cloud-init", "does not begin as"},
		"folded":        {strings.ReplaceAll(good, "\n", " "), "is all a comment", "is all a comment"},
		"no YAML": {"#cloud-config\nruncmd: [s3cr3t\n", "is not YAML: cloud-init cannot read it",
			"is not YAML"},
		"tabs": {"#cloud-config\nruncmd:\n\t- a\n", "is not YAML: cloud-init cannot read it; see its line 3", "is not YAML"},
		"misspelt": {strings.ReplaceAll(good, "_", "-"),
			"<<MACHINE-NAME>>, which nothing replaces: must be <<BOOTSTRAP_TOKEN>> or", ""},
		"a heredoc":                    {"#!/bin/sh\ncat <<EOF >> /etc/hosts\nEOF\n", "", ""},
		"a heredoc into a file":        {"#!/bin/sh\ncat <<EOF>>/etc/hosts\nEOF\n", "", ""},
		"a heredoc in YAML":            {"#cloud-config\nruncmd:\n- |\n  cat <<EOF>>/etc/hosts\n  EOF\n", "", ""},
		"a comment behind it":          {"#cloud-config # s3cr3t\nhostname: a\n", "", ""},
		"a comment behind it, no YAML": {"#cloud-config # s3cr3t\nruncmd: [a\n", "is not YAML", "is not YAML"},
		"folded above a list":          {"#cloud-config write_files:\n  - path: /a\n", "is all a comment", "is all a"},
		"no UTF-8": {"#cloud-config\nhostname: s3cr3t\xe4\n", "is not YAML: cloud-init cannot read it",
			"is not YAML: cloud-init cannot read it"},
		"a key that is twice":        {"#cloud-config\na: 1\na: 2\n", "", ""},
		"a blank behind it":          {"#cloud-config \nhostname: a\n", "", ""},
		"Mime in another case":       {"Mime-Version: 1.0\n", "", ""},
		"as long as OpenStack takes": {"#!\n" + strings.Repeat("a", 49146), "", ""},
		"longer than OpenStack takes": {"#!\n" + strings.Repeat("a", 49147), "has 49150 bytes, 65536 in base64: OpenStack",
			"has 49150 bytes, 65536 in base64: OpenStack"},
		"text for line breaks": {literal(good), asText, asText},
		"text for line breaks in a script": {literal("#!/bin/bash\nset -e\nkubeadm join s3cr3t\n") + "\n", asText,
			asText},
		"text for line breaks in MIME":  {literal("MIME-Version: 1.0\r\nContent-Type: text/plain\r\n"), asText, asText},
		"text of JSON with line breaks": {`{"ignition": {}, "systemd": {"units": [{"contents": "a\nb"}]}}`, "", ""},
		"a backslash further down":      {"#!/bin/sh\nprintf 'a\\n'\n", "", ""},
		"folded script":                 {"#!/bin/bash set -e kubeadm join s3cr3t\n", oneLine, oneLine},
		"folded template":               {"## template: jinja #cloud-config hostname: a\n", oneLine, oneLine},
		"a script below a blank line":   {"#!/bin/bash\n\nkubeadm join", "", ""},
		"a list of addresses":           {"#include https://example.com/a\n", "", ""},
		"a config without settings":     {"#cloud-config\n", "", ""},
		"template of Helm":              {"{{ .Values.s3cr3t }}", notJSON, notJSON},
		"JSON with another comma":       {`{"ignition": {"version": "3.4.0",}}`, notJSON, notJSON},
		"JSON that ends early":          {"{\n  \"ignition\": {\n", notJSON, notJSON},
		"JSON with more behind it":      {`{"ignition": {}} {}`, notJSON, notJSON},
		"JSON over several lines":       {"{\n  \"ignition\": {}\n}\n", "", ""},
		"template of Helm in YAML": {"#cloud-config\nhostname: {{ .Values.s3cr3t }}\n",
			"is not YAML: cloud-init cannot read it; a template must be rendered first", "a template must be rendered"},
		"template of Jinja":             {"## template: jinja\n#cloud-config\nhostname: {{ v1.local_hostname }}\n", "", ""},
		"template in a string":          {"#cloud-config\nruncmd:\n- docker ps --format '{{.ID}}'\n", "", ""},
		"a list":                        {"#cloud-config\n- s3cr3t\n", "is not a map", "is not a map"},
		"a text":                        {"#cloud-config\ns3cr3t\n", "is not a map", "is not a map"},
		"comments alone":                {"#cloud-config\n# nothing\n", "", ""},
		"two documents":                 {"#cloud-config\na: 1\n---\nb: 2\n", twoDocuments, twoDocuments},
		"an empty document behind it":   {"#cloud-config\na: 1\n---\n", twoDocuments, twoDocuments},
		"broken in its second document": {"#cloud-config\na: 1\n---\nb: [\n", twoDocuments, twoDocuments},
		"start and end of one document": {"#cloud-config\n---\na: 1\n...\n", "", ""},
		"keys that are merged":          {"#cloud-config\na: &a {b: 1}\nc: {<<: *a, b: 2, 3: 4}\n", "", ""},
		"an archive":                    {"#cloud-config-archive\n- type: text/cloud-config\n", "", ""},
		"placeholder with blanks": {"#!/bin/sh\njoin << BOOTSTRAP_TOKEN >>\n",
			"has << BOOTSTRAP_TOKEN >>, which nothing", ""},
		"placeholder in lower case": {"#!/bin/sh\njoin <<bootstrap_token>>\n",
			"has <<bootstrap_token>>, which nothing", ""},
		"placeholder of words": {"#!/bin/sh\njoin '<<Machine Name>>'\n",
			"has <<Machine Name>>, which nothing", ""},
		"placeholder with a number":     {"#!/bin/sh\njoin '<<TOKEN_2>>'\n", "has <<TOKEN_2>>, which nothing", ""},
		"placeholder escaped for HTML":  {"#!/bin/sh\njoin &lt;&lt;MACHINE_NAME&gt;&gt;\n", "&gt;, which nothing", ""},
		"placeholder escaped in JSON":   {`{"name": "\u003c\u003cMACHINE_NAME\u003e\u003e"}`, "\\u003e, which nothing", ""},
		"placeholder encoded otherwise": {`{"url": "data:,%3c%3cMACHINE_NAME%3e%3e"}`, "%3e%3e, which nothing", ""},
		"placeholder encoded for a URL": {`{"url": "data:,%3C%3CMACHINE_NAME%3E%3E"}`, "", "only in a Secret's userData"},
		"brackets of redirections": {"#!/bin/sh\nsort <FILE >OUT\nsort < FILE > OUT\nx=$((1 << N >> 2))\n" +
			"sort <machine_name >OUT\nsort <machine_name>OUT\n", "", ""},
		"brackets of XML":                     {"#!/bin/sh\necho \"<machineName>$x</machineName><a>b</a>\"\n", "", ""},
		"heredoc like a machine's":            {"#!/bin/sh\ncat << MACHINE_NAME >> file\na\nMACHINE_NAME\n", "", ""},
		"placeholder beside bytes of no text": {"#!/bin/sh\n# \xe4\njoin <<TOKEN>>\n", "has <<TOKEN>>, which nothing", ""},
		"bytes in base64 in YAML": {"#cloud-config\nwrite_files:\n- content: !!binary |\n    aGVs\n    bG8=\n",
			"", ""},
		"compressed": {"\x1f\x8b\x08\x00", "is compressed with gzip", "is compressed with gzip"},
	} {
		for isSecret, want := range map[bool]string{true: row.secret, false: row.class} {
			hint := userDataHint(row.text, isSecret)
			if !strings.Contains(hint, want) || (hint == "") != (want == "") || strings.Contains(hint, "s3cr3t") ||
				strings.Contains(hint, "line 1") {
				t.Errorf("%s, of a Secret %t: got %q, want %q", name, isSecret, hint, want)
			}
		}
	}
}
