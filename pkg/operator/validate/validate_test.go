// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/resource"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/check"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/workload"
)

// goodTemplate is the nodeTemplate of good.yaml.
const goodTemplate = "nodeTemplate: {capacity: {cpu: 2, gpu: 0, memory: 4Gi}, " +
	"instanceType: c2i.2, region: eu01, zone: eu01-1, architecture: amd64}"

const zone = "  availabilityZone: eu01-1\n"

func TestClasses(t *testing.T) {
	nodeTemplate := func(template string) []string { return []string{goodTemplate, "nodeTemplate: " + template} }
	const longName = "abcde-abcde-abcde-abcde-abcde-abcde-abcde-abcde-abcde-abcde-abcdef"
	for name, row := range map[string]row{
		"nothing": {nil, 0, nil},
		"no cluster label": {[]string{"  labels: {kubernetes.io/cluster: one}\n", ""}, 0,
			[]string{"hint     -:17:3: MachineClass default/worker: providerSpec.labels: " + check.NoClusterLabel}},
		"unknown field": {[]string{"  machineType:", "  machineTyp: a\n  machineType:"}, 1,
			[]string{"wrong    -:17:15: MachineClass default/worker: providerSpec.machineTyp: is not a known field"}},
		"unknown field of the class": {[]string{"provider: stackit", "provider: stackit\nnodeTemplat: {}"}, 1,
			[]string{"MachineClass default/worker: nodeTemplat: unknown field"}},
		"value of the driver's rules": {[]string{"{size: 20}", "{size: -1}"}, 1,
			[]string{"-:20:22: MachineClass default/worker: providerSpec.bootVolume.size: Invalid value: -1: must be 1"}},
		"a very long value": {[]string{"machineType: c2i.2", "machineType: " + strings.Repeat("-", 100_000)}, 1,
			[]string{`providerSpec.machineType: Invalid value: "` + strings.Repeat("-", 80) + `...": must be`}},
		"label that is a number": {[]string{"{kubernetes.io/cluster: one}", "{a: b, kubernetes.io/cluster: 1}"}, 1,
			[]string{"-:21:11: MachineClass default/worker: providerSpec.labels: Invalid value: json: cannot unmarshal number"}},
		"network is nowhere": {[]string{"  networkId: 20000000-0000-4000-8000-000000000001\n", ""}, 1,
			[]string{"providerSpec.networking: Required value: set networkId or nicIds"}},
		"a zone as region":       {[]string{zone, "  region: eu01-1\n"}, 0, []string{"hint"}},
		"zone of another region": {[]string{zone, "  availabilityZone: eu02-1\n"}, 0, nil},
		"name is too long": {[]string{"name: worker}", "name: " + longName + "}"}, 1,
			[]string{"becomes a label of the server: must be 1 to 63"}},
		"name with dots": {[]string{"name: worker}", "name: w.a}", "name: worker}}", "name: w.a}}", "name: worker}}",
			"name: w.a}}"}, 0, []string{"MachineClass default/w.a: metadata.name: has dots: the host's name ends at the first"}},
		"another provider": {[]string{"provider: stackit", "provider: OpenStack", goodTemplate, ""}, 1,
			[]string{`-:14:11: MachineClass default/worker: provider: Unsupported value: "OpenStack"`}},

		"nodeTemplate lacks things": {nodeTemplate("{capacity: {cpu: 1}, instanceType: a}"), 1,
			[]string{"nodeTemplate.capacity.gpu: Required value: ", "nodeTemplate.capacity.memory: Required value: ",
				"nodeTemplate.region: Required value: ", "nodeTemplate.zone: Required value: ",
				`nodeTemplate.instanceType: is "a", but the servers' machineType is "c2i.2"`}},
		"a quantity of nodeTemplate": {
			nodeTemplate("{capacity: {cpu: x, gpu: 0, memory: 4Gi}, instanceType: a, region: b, zone: c}"), 1,
			[]string{"MachineClass default/worker: quantities must match"}},
		"zone of the nodeTemplate alone": {[]string{zone, ""}, 0,
			[]string{"nodeTemplate.zone: neither class nor Secret names a zone"}},
		"another zone than nodeTemplate's": {[]string{zone, "  availabilityZone: eu01-2\n"}, 1,
			[]string{`nodeTemplate.zone: is "eu01-1", but the servers' availabilityZone is "eu01-2"`}},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, run(t, offline(), good(t, row.changes...), Options{}), row.code, row.says...)
		})
	}
}

func TestSecrets(t *testing.T) {
	const secretRef = "secretRef: {name: credentials, namespace: default}"
	const credentialsRef = "credentialsSecretRef: {name: more, namespace: default}\nproviderSpec:"
	const more = "apiVersion: v1\nkind: Secret\nmetadata: {name: more}\nstringData: {region: eu02}\n---\n"
	const keyField = "Secret default/credentials: serviceAccountKey: "
	wrong := strings.Replace(more, "region: eu02", "projectId: x", 1)
	tomorrow := time.Now().Add(24 * time.Hour).Format(time.RFC3339)
	for name, row := range map[string]row{
		"not in the files": {[]string{"metadata: {name: credentials}", "metadata: {name: other}"}, 2,
			[]string{"unknown  -:15:12: MachineClass default/worker: secretRef: Secret default/credentials is not in"}},
		"the second is not in the files": {[]string{"providerSpec:", credentialsRef}, 2,
			[]string{"Secret default/more is not in the files"}},
		"none is named": {[]string{secretRef + "\n", ""}, 1,
			[]string{"MachineClass default/worker: secretRef: Required value: "}},
		"of another namespace": {[]string{secretRef, "secretRef: {name: credentials, namespace: other}"}, 1,
			[]string{`secretRef.namespace: is "other": must be "default"`, "Secret other/credentials is not in the files"}},
		"reference without namespace": {[]string{secretRef, "secretRef: {name: credentials}"}, 1,
			[]string{`secretRef.namespace: is "": must be "default"`}},
		"reference without name": {[]string{secretRef, "secretRef: {namespace: default}"}, 1,
			[]string{"secretRef.name: Required value: "}},
		"the second wins": {[]string{"providerSpec:", credentialsRef, "---\n", "---\n" + wrong}, 1,
			[]string{"-:14:25: Secret default/more: projectId: Invalid value: must be a UUID"}},
		"neither has userData": {[]string{"providerSpec:", credentialsRef, "---\n", "---\n" + more, "userData:", "userdata:"},
			1, []string{"Secret default/more: userData: Required value: "}},
		"of no class": {[]string{"---\n", "---\n" + wrong}, 0, nil},
		"region":      {[]string{"region: eu01", "region: the-canary/"}, 1, []string{"must be a region such as eu01"}},
		"key is no JSON": {[]string{`serviceAccountKey: "{`, `serviceAccountKey: "the-canary {`}, 1,
			[]string{"wrong    -:9:22: " + keyField + "Invalid value: the service-account key is not the JSON"}},
		"key that is switched off": {[]string{`\"active\": true`, `\"active\": false`}, 1,
			[]string{keyField + "the key is inactive according to its file"}},
		"key that expired, in Gardener's spelling": {[]string{"serviceAccountKey:", "serviceaccount.json:",
			`\"active\": true`, `\"active\": true, \"validUntil\": \"2026-01-01T00:00:00Z\"`}, 1,
			[]string{keyField + "the key expired at 2026-01-01 00:00:00 UTC"}},
		"key that expires soon": {[]string{`\"active\": true`, `\"active\": true, \"validUntil\": \"` + tomorrow + `\"`}, 0,
			[]string{"hint     -:9:22: " + keyField + "the key expires at "}},
		"key of another project": {
			[]string{`\"projectId\": \"` + iaasmock.DefaultProjectID, `\"projectId\": \"` + iaasmock.SecondProjectID}, 0,
			[]string{keyField + "the key belongs to a service account of another project"}},
		"data that is not base64": {[]string{"stringData:\n", "data: {region: ü}\nstringData:\n"}, 1,
			[]string{"Secret default/credentials: illegal base64 data"}},
		"data beside stringData": {[]string{"stringData:\n", "data: {userData: aGVsbG8=}\nstringData:\n",
			"  userData: \"#cloud-config\\n# the-canary\"\n", ""}, 0, []string{"userData: does not begin as cloud-init"}},
		"a value that lost its quotes": {[]string{"stringData:\n", "the-canary: x\nstringData:\n"}, 1,
			[]string{"Secret default/credentials: unknown field …"}},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, run(t, offline(), good(t, row.changes...), Options{}), row.code, row.says...)
		})
	}
}

func TestUserData(t *testing.T) {
	encode := base64.StdEncoding.EncodeToString
	for name, row := range map[string]struct{ text, says string }{
		"cloud-config":   {"#cloud-config\nhostname: <<MACHINE_NAME>>\n", ""},
		"a script":       {"#!/bin/bash\n", ""},
		"Ignition":       {`{"ignition": {"version": "3.4.0"}}`, ""},
		"MIME":           {"Mime-Version: 1.0\n", ""},
		"empty":          {"", "is empty: fine if the image wants none"},
		"base64":         {encode([]byte("#cloud-config\n")), "is encoded in base64"},
		"gzip in base64": {encode([]byte("\x1f\x8b\x08\x00")), "is encoded in base64"},
		"no header":      {"hostname: s3cr3t\n", "does not begin as cloud-init or Ignition expects"},
	} {
		quoted := strconv.Quote(row.text)
		for _, text := range []string{
			good(t, `"#cloud-config\n# the-canary"`, quoted),
			good(t, zone, zone+"  userData: "+quoted+"\n", `"#cloud-config\n# the-canary"`, `"#!"`),
		} {
			t.Run(name, func(t *testing.T) {
				result := run(t, offline(), text, Options{})
				if row.text == "" && strings.Contains(text, "availabilityZone: eu01-1\n  userData") { // as if it were not set
					return
				}
				if row.says == "" {
					expect(t, result, 0)
				} else {
					expect(t, result, 0, row.says)
				}
			})
		}
	}
}

func TestMachines(t *testing.T) {
	for name, row := range map[string]row{
		"name is too short": {[]string{"name: single}", "name: one}"}, 1,
			[]string{`-:26:18: Machine default/one: metadata.name: Invalid value: "one": must have at least 5 characters`}},
		"name with dots": {[]string{"name: single}", "name: single.example.com}"}, 0,
			[]string{"hint     -:26:18: Machine default/single.example.com: metadata.name: has dots"}},
		"without a name": {[]string{"name: single}", "labels: {pool: a}}"}, 1,
			[]string{"Machine default/: metadata.name: Req"}},
		"name is generated": {[]string{"name: single}", "generateName: single-}"}, 0, nil},
		"what kubectl gets": {[]string{"metadata: {name: single}\n", `metadata: {name: single, uid: a, resourceVersion: "1",
  managedFields: [{manager: m, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {}}}]}
status: {currentStatus: {phase: Running, lastUpdateTime: "2026-01-01T00:00:00Z"}, newer: 1}
`}, 0, nil},
		"control characters": {[]string{"name: single}", `name: "sin\e[31mgle\n"}`}, 1,
			[]string{"Machine default/sin?[31mgle"}},
		"class is not given": {[]string{"name: worker}}\n", "name: other}}\n"}, 2,
			[]string{"-:27:42: Machine default/single: spec.class.name: MachineClass default/other is not in the files"}},
		"no class": {[]string{"spec: {class: {kind: MachineClass, name: worker}}", "spec: {}"}, 1,
			[]string{"spec.class.kind: Kind is required", "spec.class.name: Name is required"}},
		"class of another kind": {[]string{"{kind: MachineClass", "{kind: MachineKlass"}, 1,
			[]string{`spec.class.kind: Unsupported value: "MachineKlass"`}},
		"duration in days": {[]string{"spec: {class: {kind", "spec: {drainTimeout: 2d, class: {kind"}, 1,
			[]string{`Machine default/single: time: unknown unit "d" in duration "2d"`}},
		"no selector": {[]string{"  selector: {matchLabels: {pool: a}}\n", ""}, 1,
			[]string{"MachineDeployment default/pool: spec.selector: set matchLabels"}},
		"selector selects all": {[]string{"selector: {matchLabels: {pool: a}}", "selector: {}"}, 1,
			[]string{"spec.selector: "}},
		"selector cannot be used": {
			[]string{"selector: {matchLabels: {pool: a}}", "selector: {matchExpressions: [{key: a, operator: Like}]}"}, 1,
			[]string{"spec.selector: "}},
		"number in quotes": {[]string{"{maxSurge: 1, maxUnavailable: 0}", `{maxSurge: "1"}`}, 1,
			[]string{"rollingUpdate.maxSurge: ", "rollingUpdate.maxUnavailable: "}},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, run(t, offline(), good(t, row.changes...), Options{}), row.code, row.says...)
		})
	}
}

func TestAllowMissingSecret(t *testing.T) {
	noSecret := []string{"metadata: {name: credentials}", "metadata: {name: other}"}
	const missing = "hint     -:15:12: MachineClass default/worker: secretRef: Secret default/credentials is not in"
	for name, row := range map[string]row{
		"no Secret":            {noSecret, 0, []string{missing}},
		"no Secret, but wrong": {append([]string{"provider: stackit", "provider: aws"}, noSecret...), 1, nil},
		"Secret encrypted by SOPS": {[]string{"kind: Secret\n", "kind: Secret\nsops: {version: 3.9.0}\n"}, 0,
			[]string{"Secret default/credentials is not in the files"}},
		"SOPS without its block": {[]string{"region: eu01", `region: "ENC[AES256_GCM,data:Zm9v,type:str]"`}, 0,
			[]string{missing}},
		"no Secret, and no class": {append([]string{"name: worker}}\n", "name: other}}\n"}, noSecret...), 2,
			[]string{"MachineClass default/other is not in the files"}},
		"placeholder":    {[]string{`serviceAccountKey: "{`, `serviceAccountKey: "replace-me {`}, 0, []string{missing}},
		"no placeholder": {[]string{`serviceAccountKey: "{`, `serviceAccountKey: "x {`}, 1, []string{"is not the JSON"}},
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
	expect(t, run(t, rig.Access, text, Options{}), 0, "userData: does not begin as cloud-init")
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
	for name, row := range map[string]struct {
		lifetime time.Duration
		mail     string
		code     int
		says     []string
	}{
		"token": {time.Hour, "serviceAccountEmail: a@b.c\n  ", 0, nil},
		"expired token": {-time.Hour, "serviceAccountEmail: a@b.c\n  ", 1,
			[]string{"the workload identity's token expired at "}},
		"no account": {time.Hour, "", 1, []string{"serviceAccountEmail: Required value: must be the email address"}},
		"key, too":   {time.Hour, "serviceAccountKey: '{}'\n  serviceAccountEmail: a@b.c\n  ", 1, []string{"must not"}},
	} {
		t.Run(name, func(t *testing.T) {
			token, err := issuer.Token(time.Now().Add(row.lifetime), nil)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(good(t), "\n")
			at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "  serviceAccountKey:") })
			lines[at] = "  " + row.mail + "token: " + token
			expect(t, run(t, offline(), strings.Join(lines, "\n"), Options{}), row.code, row.says...)
		})
	}
}
