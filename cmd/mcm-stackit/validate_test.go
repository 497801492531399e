// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestValidateManyErrors(t *testing.T) {
	for name, args := range map[string][]string{
		"validate-bad.txt": nil, "validate-bad.json": {"-o", "json"}, "validate-bad.yaml": {"-o", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: append([]string{"validate", "-f", "testdata/validate/bad.yaml"}, args...)}.run(t)
			if got.code != 1 {
				t.Errorf("exit code %d, want 1", got.code)
			}
			if strings.Contains(got.stdout+got.stderr, "maybe-secret") {
				t.Error("a value of the Secret was printed")
			}
			expectGolden(t, name, got.stdout+got.stderr)
		})
	}
}

func TestValidateSamples(t *testing.T) {
	got := invocation{args: []string{"validate", "-f", "../../samples"}}.run(t)
	if got.code != 1 {
		t.Errorf("exit code %d, want 1 for the key, which is a placeholder", got.code)
	}
	expectGolden(t, "validate-samples.txt", got.stdout+got.stderr)
}

// TestValidateSamplesInCI has the samples as a repository has them: with a Secret that has
// placeholders, or without one.
func TestValidateSamplesInCI(t *testing.T) {
	samples := []string{"validate", "-f", "../../samples/machine-class.yaml", "-f", "../../samples/machine-class-minimal.yaml", "-f", "../../samples/machine-deployment.yaml", "-f", "../../samples/machine.yaml"}
	without := invocation{args: append(samples, "--allow-missing-secret")}.run(t)
	without.expect(t, 0,
		"stackit-worker: secretRef: Secret default/stackit-credentials is not given: whether it is right cannot be told, nor its projectId, serviceAccountKey, userData; add",
		"stackit-worker-minimal: secretRef: Secret default/stackit-credentials is not given: whether it is right cannot be told, nor its projectId, serviceAccountKey, userData, region, networkId; add",
		"nothing is wrong, 2 could not be told, which is allowed.")
	folder := invocation{args: []string{"validate", "-f", "../../samples", "--allow-missing-secret"}}.run(t)
	folder.expect(t, 0, "stringData.serviceAccountKey: is a placeholder (replace-me): whether the value is right cannot be told", "nothing is wrong, 1 could not be told, which is allowed.")
}

func TestValidateAllowed(t *testing.T) {
	cloud, env := startMock(t)
	noSecret := []string{"metadata: {name: credentials}", "metadata: {name: other}"}
	noClass := []string{"name: worker}}\n", "name: other}}\n"}
	secret, unknown := []string{"--allow-missing-secret"}, []string{"--allow-unknown"}
	for name, row := range map[string]struct {
		changes, args []string
		code          int
		says          string
	}{
		"no Secret":                      {noSecret, nil, 2, "Secret default/credentials is not given"},
		"no Secret, allowed":             {noSecret, secret, 0, "Secret default/credentials is not given"},
		"no Secret, all allowed":         {noSecret, unknown, 0, "Secret default/credentials is not given"},
		"no Secret, but wrong":           {append([]string{"provider: stackit", "provider: aws"}, noSecret...), secret, 1, `provider: is "aws"`},
		"wrong, all allowed":             {[]string{"provider: stackit", "provider: aws"}, unknown, 1, `provider: is "aws"`},
		"no Secret, online":              {noSecret, append(secret, "--online"), 0, "could not be checked online: its Secret is not given"},
		"no Secret, and no class":        {append(noClass, noSecret...), secret, 2, "MachineClass default/other is not given"},
		"no class":                       {noClass, secret, 2, "MachineClass default/other is not given"},
		"no class, all allowed":          {noClass, unknown, 0, "MachineClass default/other is not given"},
		"nothing to ask, all allowed":    {without(goodClass), append(unknown, "--online"), 0, "the API was not asked: there is no MachineClass"},
		"placeholder":                    {[]string{`serviceAccountKey: "{`, `serviceAccountKey: "replace-me {`}, nil, 1, "the service-account key is not the JSON"},
		"placeholder, allowed":           {[]string{`serviceAccountKey: "{`, `serviceAccountKey: "replace-me {`}, secret, 0, "is a placeholder"},
		"placeholder of a lone Secret":   {append(without(goodClass), "projectId: 1", "projectId: replace-me-1", "name: worker}}\n", "name: other}}\n"), append(secret, unknown...), 0, "stringData.projectId: is a placeholder"},
		"key that is no placeholder":     {[]string{`serviceAccountKey: "{`, `serviceAccountKey: "x {`}, secret, 1, "the service-account key is not the JSON"},
		"region that is a placeholder":   {[]string{"region: eu01", "region: replace-me/"}, secret, 0, "stringData.region: is a placeholder"},
		"nothing to allow, text as ever": {nil, append(secret, unknown...), 0, "Secret: nothing is wrong.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			invocation{args: append([]string{"validate", "-f", "-"}, row.args...), env: env, stdin: manifests(t, cloud, row.changes...)}.run(t).expect(t, row.code, row.says)
		})
	}
}

// A kubeconfig that cannot be used keeps nobody from checking files.
func TestValidateFilesWithABrokenKubeconfig(t *testing.T) {
	cloud, env := startMock(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte("clusters: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	env = append(env, "KUBECONFIG="+kubeconfig)
	text := manifests(t, cloud)
	invocation{args: []string{"validate", "-f", "-"}, env: env, stdin: text}.run(t).expect(t, 0, "nothing is wrong.")
	alone := text[strings.Index(text, goodDeployment):]
	invocation{args: []string{"validate", "-f", "-"}, env: env, stdin: alone}.run(t).expect(t, 2,
		"MachineClass default/worker is not given: whether it is there cannot be told: reading the kubeconfig of the cluster with the Machines: ")
}

func TestValidateLargeUserData(t *testing.T) {
	cloud, env := startMock(t)
	const most = 49149 // 65532 in base64
	own := "machineType: c2i.2\n  userData: "
	for name, row := range map[string]struct {
		changes []string
		says    string
		not     string
	}{
		"as much as OpenStack takes": {[]string{"#cloud-config the-canary", strings.Repeat("u", most)}, "nothing is wrong.\n", "OpenStack"},
		"more":                       {[]string{"#cloud-config the-canary", strings.Repeat("u", most+1)}, "-:8:13: Secret default/credentials: stringData.userData: has 49150 bytes, in base64 65536: the API may refuse it; the API document names no limit, OpenStack's is 65535 bytes in base64, which is 49149 of text\n", "-:17"},
		"more in the class":          {[]string{"machineType: c2i.2", own + strings.Repeat("u", most+1)}, "-:18:13: MachineClass default/worker: providerSpec.userData: has 49150 bytes", "-:8:13"},
		"of a class with less":       {[]string{"#cloud-config the-canary", strings.Repeat("u", most+1), "machineType: c2i.2", own + "less"}, "nothing is wrong.\n", "OpenStack"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: []string{"validate", "-f", "-"}, env: env, stdin: manifests(t, cloud, row.changes...)}.run(t)
			got.expect(t, 0, row.says)
			if strings.Contains(got.stdout, row.not) || strings.Contains(got.stdout, "uuuu") {
				t.Errorf("stdout has %q, or a value:\n%s", row.not, got.stdout)
			}
		})
	}
}

func TestValidateNothingWrong(t *testing.T) {
	cloud, env := startMock(t)
	text := manifests(t, cloud)
	for name, row := range map[string]struct {
		args  []string
		stdin string
		says  string
	}{
		"text":             {nil, text, "Checked 1 Machine, 1 MachineClass, 1 MachineDeployment, 1 Secret: nothing is wrong.\n"},
		"JSON":             {[]string{"-o", "json"}, text, `"findings": [],`},
		"YAML":             {[]string{"-o", "yaml"}, text, "findings: []\n"},
		"Windows":          {nil, strings.ReplaceAll(text, "\n", "\r\n"), "nothing is wrong."},
		"one Secret alone": {nil, text[:strings.Index(text, "\n---")], "Checked 1 Secret: nothing is wrong."},
		"a List": {nil, "apiVersion: v1\nkind: List\nitems:\n- " +
			strings.ReplaceAll(strings.ReplaceAll(strings.TrimSuffix(strings.TrimSpace(text), "---"), "\n---\n", "\n- "), "\n", "\n  "), "nothing is wrong."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdin := row.stdin
			if name == "a List" {
				stdin = strings.ReplaceAll(stdin, "\n  - ", "\n- ")
			}
			invocation{args: append([]string{"validate", "-f", "-"}, row.args...), env: env, stdin: stdin}.run(t).expect(t, 0, row.says)
		})
	}
}

// longName has 60 characters.
var longName = strings.Repeat("abcde-", 9) + "abcdef"

func TestValidateFindings(t *testing.T) {
	cloud, env := startMock(t)
	credentialsRef := "credentialsSecretRef: {name: more, namespace: default}\nproviderSpec:"
	more := "apiVersion: v1\nkind: Secret\nmetadata: {name: more}\nstringData: {region: eu02}\n---\n"
	for name, row := range map[string]struct {
		changes []string
		code    int
		says    []string
	}{
		"wrong provider":               {[]string{"provider: stackit", "provider: aws"}, 1, []string{`-:14:11: MachineClass default/worker: provider: is "aws"; must be "stackit"`}},
		"no cluster label":             {[]string{"  labels: {kubernetes.io/cluster: one}\n", ""}, 1, []string{"providerSpec.labels: has no cluster label", "deleted as orphans"}},
		"cluster label of a bad form":  {[]string{"cluster: one", "cluster: -one"}, 1, []string{`-:20:35: MachineClass default/worker: providerSpec.labels[kubernetes.io/cluster]: is "-one"; a label's value must be`}},
		"providerSpec is null":         {[]string{"providerSpec:\n  machineType: c2i.2\n  imageId: 30000000-0000-4000-8000-000000000001\n  bootVolume: {size: 20}\n  labels: {kubernetes.io/cluster: one}\n", "providerSpec: null\n"}, 1, []string{"providerSpec: is empty, must be a JSON object"}},
		"providerSpec is a list":       {[]string{"providerSpec:\n  machineType: c2i.2\n  imageId: 30000000-0000-4000-8000-000000000001\n  bootVolume: {size: 20}\n  labels: {kubernetes.io/cluster: one}\n", "providerSpec: []\n"}, 1, []string{"providerSpec: is a JSON array, must be a JSON object"}},
		"unknown field":                {[]string{"machineType: c2i.2", "machineType: c2i.2\n  netwrking: {}"}, 1, []string{`-:18:14: MachineClass default/worker: providerSpec.netwrking: is not a known field; did you mean "networking"?`}},
		"unknown field of the class":   {[]string{"provider: stackit", "provider: stackit\nsecretref: {}"}, 1, []string{`-:15:12: MachineClass default/worker: secretref: is not a known field; did you mean "secretRef"?`}},
		"unknown field, nothing near":  {[]string{"machineType: c2i.2", "machineType: c2i.2\n  zzzzzzzz: 1"}, 1, []string{"providerSpec.zzzzzzzz: is not a known field\n"}},
		"wrong type deep in an object": {[]string{"replicas: 2", "replicas: 2\n  minReadySeconds: soon"}, 1, []string{"-:32:20: MachineDeployment default/pool: spec.minReadySeconds: is a JSON string; must be a whole number"}},
		"two wrong types":              {[]string{"metadata: {name: single}", "metadata: {name: single, labels: {a: 1, b: [2]}}"}, 1, []string{"metadata.labels.a: is a JSON number; must be a string", "metadata.labels.b: is a JSON array; must be a string"}},
		"quantity":                     {[]string{"providerSpec:\n", "nodeTemplate: {capacity: {cpu: x, gpu: 0, memory: 4Gi}, instanceType: a, region: b, zone: c}\nproviderSpec:\n"}, 1, []string{"-:16:32: MachineClass default/worker: nodeTemplate.capacity.cpu: cannot be decoded: quantities must match"}},
		"nodeTemplate lacks things":    {[]string{"providerSpec:\n", "nodeTemplate: {capacity: {cpu: 1}, instanceType: a}\nproviderSpec:\n"}, 1, []string{"nodeTemplate.capacity.gpu: is missing", "nodeTemplate.capacity.memory: is missing", "nodeTemplate.region: is missing", "nodeTemplate.zone: is missing"}},

		"Secret is not given":              {[]string{"metadata: {name: credentials}", "metadata: {name: other}"}, 2, []string{"-:15:12: MachineClass default/worker: secretRef: Secret default/credentials is not given"}},
		"second Secret is not given":       {[]string{"providerSpec:", credentialsRef}, 2, []string{"credentialsSecretRef: Secret default/more is not given"}},
		"no Secret is named":               {[]string{"secretRef: {name: credentials, namespace: default}\n", ""}, 1, []string{"MachineClass default/worker: secretRef: is missing"}},
		"Secret of another namespace":      {[]string{"secretRef: {name: credentials, namespace: default}", "secretRef: {name: credentials, namespace: other}"}, 1, []string{`secretRef.namespace: is "other"; must be "default"`, "Secret other/credentials is not given"}},
		"reference without namespace":      {[]string{"secretRef: {name: credentials, namespace: default}", "secretRef: {name: credentials}"}, 1, []string{`secretRef.namespace: is missing; must be "default"`}},
		"reference without name":           {[]string{"secretRef: {name: credentials, namespace: default}", "secretRef: {namespace: default}"}, 1, []string{"secretRef.name: is missing"}},
		"second Secret wins":               {[]string{"providerSpec:", credentialsRef, "---\n", "---\n" + strings.Replace(more, "region: eu02", "projectId: x", 1)}, 1, []string{"-:14:25: Secret default/more: stringData.projectId: is wrong; must be a UUID"}},
		"neither Secret has userData":      {[]string{"providerSpec:", credentialsRef, "---\n", "---\n" + more, "userData:", "userdata:"}, 1, []string{"credentialsSecretRef: userData is missing in Secret default/credentials and in Secret default/more", `is the key "userdata" meant to be it?`}},
		"no userData":                      {[]string{"  userData: \"#cloud-config the-canary\"\n", ""}, 1, []string{"-:5:3: Secret default/credentials: stringData.userData: is missing; the key must exist"}},
		"empty userData":                   {[]string{"userData: \"#cloud-config the-canary\"", `userData: ""`}, 0, []string{"nothing is wrong"}},
		"project is no UUID":               {[]string{"10000000-0000", "the-canary"}, 1, []string{"-:5:14: Secret default/credentials: stringData.projectId: is wrong; must be a UUID"}},
		"both spellings":                   {[]string{"stringData:\n", "stringData:\n  project-id: 10000000-0000-4000-8000-000000000002\n"}, 1, []string{`stringData.projectId: differs from "project-id", which means the same`}},
		"key is no JSON":                   {[]string{`serviceAccountKey: "{`, `serviceAccountKey: "the-canary {`}, 1, []string{"-:9:22: Secret default/credentials: stringData.serviceAccountKey: the service-account key is not the JSON"}},
		"data that is not base64":          {[]string{"stringData:\n", "data: {region: ü}\nstringData:\n"}, 1, []string{"-:4:16: Secret default/credentials: data.region: is not base64"}},
		"data instead of text":             {[]string{"stringData:\n", "data: {userData: aGVsbG8=}\nstringData:\n", "  userData: \"#cloud-config the-canary\"\n", ""}, 0, []string{"nothing is wrong"}},
		"region is nowhere":                {[]string{"  region: eu01\n", ""}, 1, []string{`-:16:3: MachineClass default/worker: providerSpec.region: is missing; set it here or as "region" in the Secret`}},
		"network is nowhere":               {[]string{"  networkId: 20000000-0000-4000-8000-000000000001\n", ""}, 1, []string{"providerSpec.networking: is missing; set networkId or nicIds"}},
		"Secret alone is wrong":            {append(without(goodClass), "10000000-0000", "x"), 1, []string{"Secret default/credentials: stringData.projectId: is wrong"}},
		"a Secret of something else alone": {append(without(goodClass), "  projectId:", "  a:", "  serviceAccountKey:", "  b:"), 2, nil},

		"name of a class is too long":      {[]string{"name: worker}", "name: " + longName + "-abcd}"}, 1, []string{"becomes a label of the server: must be 1 to 63"}},
		"name of a Machine is too long":    {[]string{"name: single}", "name: " + longName + "-abcd}"}, 1, []string{"-:24:18: Machine default/" + longName + "-abcd: metadata.name: is", "must be 1 to 63 letters"}},
		"name of a Machine is too short":   {[]string{"name: single}", "name: one}"}, 1, []string{`metadata.name: is "one"; must have at least 5 characters`}},
		"name of a Machine is generated":   {[]string{"name: single}", "generateName: single-}"}, 0, []string{"nothing is wrong"}},
		"no name":                          {[]string{"metadata: {name: single}", "metadata: {}"}, 1, []string{"metadata.name: is missing"}},
		"name of a deployment gets cut":    {[]string{"name: pool}", "name: " + longName + "}"}, 0, []string{"nothing is wrong"}},
		"name of a deployment is too long": {[]string{"name: pool}", "name: " + strings.Repeat("a", 248) + "}"}, 1, []string{"metadata.name: has 248 characters; must have at most 247"}},
		"name that Kubernetes refuses":     {[]string{"name: pool}", "name: Pool}"}, 1, []string{`metadata.name: is "Pool"; must be at most 253 lower-case`}},
		"the same object twice":            {[]string{goodMachine, goodMachine + goodMachine}, 1, []string{"-:29:18: Machine default/single: metadata.name: is given twice, first at -:24:18"}},

		"class is not given":           {[]string{"name: worker}}\n", "name: other}}\n"}, 2, []string{"-:25:42: Machine default/single: spec.class.name: MachineClass default/other is not given"}},
		"class of another kind":        {[]string{"kind: MachineClass, ", "kind: OpenStackMachineClass, "}, 1, []string{`-:25:22: Machine default/single: spec.class.kind: is "OpenStackMachineClass"; must be "MachineClass"`}},
		"no class":                     {[]string{"spec: {class: {kind: MachineClass, name: worker}}", "spec: {}"}, 1, []string{"spec.class.kind: Kind is required", "spec.class.name: Name is required"}},
		"spec is null":                 {[]string{"spec: {class: {kind: MachineClass, name: worker}}", "spec: null"}, 1, []string{"spec.class.name: Name is required"}},
		"no selector":                  {[]string{"  selector: {matchLabels: {pool: a}}\n", ""}, 1, []string{"-:31:3: MachineDeployment default/pool: spec.selector: is missing"}},
		"selector selects all":         {[]string{"selector: {matchLabels: {pool: a}}", "selector: {}"}, 1, []string{"spec.selector: selects all Machines"}},
		"selector cannot be used":      {[]string{"selector: {matchLabels: {pool: a}}", "selector: {matchExpressions: [{key: a, operator: Like}]}"}, 1, []string{"spec.selector: "}},
		"labels do not match":          {[]string{"metadata: {labels: {pool: a}}", "metadata: {labels: {pool: b}}"}, 1, []string{"spec.selector.matchLabels: is not matching with spec.template.metadata.labels"}},
		"strategy is not known":        {[]string{"type: RollingUpdate", "type: Rolling"}, 1, []string{`spec.strategy.type: is "Rolling"`}},
		"replicas share what is there": {[]string{"  bootVolume: {size: 20}\n", "  bootVolume: {size: 20}\n  volumes: [60000000-0000-4000-8000-000000000001]\n"}, 1, []string{"spec.replicas: is 2; must be at most 1: providerSpec.volumes of MachineClass default/worker"}},

		"version of 2030":       {[]string{"machine.sapcloud.io/v1alpha1\nkind: MachineClass", "machine.sapcloud.io/v2\nkind: MachineClass"}, 1, []string{`-:11:13: MachineClass default/worker: apiVersion: is "machine.sapcloud.io/v2"; must be machine.sapcloud.io/v1alpha1`}},
		"group misspelled":      {[]string{"machine.sapcloud.io/v1alpha1\nkind: MachineClass", "machines.sapcloud.io/v1alpha1\nkind: MachineClass"}, 1, []string{`-:11:13: MachineClass default/worker: apiVersion: is "machines.sapcloud.io/v1alpha1"`}},
		"no group":              {[]string{"machine.sapcloud.io/v1alpha1\nkind: MachineClass", "v1\nkind: MachineClass"}, 1, []string{`apiVersion: is "v1"; must be machine.sapcloud.io/v1alpha1`}},
		"kind misspelled":       {[]string{"kind: MachineClass\nmeta", "kind: Machineclass\nmeta"}, 1, []string{`-:12:7: Machineclass default/worker: kind: is "Machineclass"; must be MachineClass`}},
		"kind that is none":     {[]string{"kind: MachineClass\nmeta", "kind: Worker\nmeta"}, 1, []string{`kind: is "Worker", which machine.sapcloud.io does not have; must be one of: MachineClass, Machine, MachineDeployment, MachineSet`}},
		"Secret of v2":          {[]string{"apiVersion: v1\n", "apiVersion: v2\n"}, 1, []string{`-:1:13: Secret default/credentials: apiVersion: is "v2"; must be v1`}},
		"items that are a text": {[]string{"apiVersion: v1\nkind: Secret\n", "apiVersion: v1\nkind: List\nitems: x\n---\napiVersion: v1\nkind: Secret\n"}, 1, []string{"-:3:8: manifest: items is no list: must be a list of objects"}},

		"size is a text":        {[]string{"{size: 20}", `{size: "20"}`}, 1, []string{"-:19:22: MachineClass default/worker: providerSpec.bootVolume.size: is a JSON string; must be a whole number"}},
		"size is enormous":      {[]string{"{size: 20}", "{size: 99999999999999999999999}"}, 1, []string{"-:19:22: MachineClass default/worker: providerSpec.bootVolume.size: is a number that is too large or has a fraction; must be a whole number"}},
		"wrong type and name":   {[]string{"{size: 20}", `{size: "20", sise: 20}`}, 1, []string{"providerSpec.bootVolume.size: is a JSON string", `providerSpec.bootVolume.sise: is not a known field; did you mean "size"?`}},
		"label is a number":     {[]string{"cluster: one", "cluster: one, a/b: 123"}, 1, []string{"-:20:45: MachineClass default/worker: providerSpec.labels[a/b]: is a JSON number; must be a string"}},
		"region of the Secret":  {[]string{"region: eu01", "region: the-canary/"}, 1, []string{"-:6:11: Secret default/credentials: stringData.region: is wrong; must be a region such as eu01"}},
		"region of the class":   {[]string{"machineType: c2i.2", "region: a/b\n  machineType: c2i.2"}, 1, []string{"-:17:11: MachineClass default/worker: providerSpec.region: is wrong"}},
		"alias without anchor":  {[]string{"region: eu01", "region: *the-canary"}, 1, []string{"-:6:11: manifest: is not YAML: a text that begins with * is an alias"}},
		"control character":     {[]string{"region: eu01", "region: \"eu\x0001\""}, 1, []string{"-:6:14: manifest: is not YAML: control characters are not allowed"}},
		"infinite number":       {[]string{"{size: 20}", "{size: .inf}"}, 1, []string{"-:19:22: manifest: cannot be read: must be what its tag says"}},
		"key that is a list":    {[]string{"{size: 20}", "{[size]: 20}"}, 1, []string{"-:19:16: manifest: this key cannot be read: must be a text"}},
		"merge of a text":       {[]string{"  bootVolume", "  <<: text\n  bootVolume"}, 1, []string{"-:19:3: manifest: this key merges a mapping, and its value is none"}},
		"tab":                   {[]string{"  region: eu01", "\tregion: eu01"}, 1, []string{"-:6:1: manifest: has a tab where YAML wants spaces"}},
		"template":              {[]string{"region: eu01", "region: {{ .Values.region }}"}, 1, []string{"-:6:11: manifest: is a template ({{ }}), not YAML: render it first"}},
		"directive on line one": {[]string{"apiVersion: v1\nkind: Secret", "%FOO\n---\napiVersion: v1\nkind: Secret"}, 1, []string{"-:1:1: manifest: is not YAML: found unknown directive name"}},

		"two documents with one key twice": {[]string{"provider: stackit", "provider: stackit\nprovider: stackit"}, 1, []string{"-:15:1: manifest: this key is there twice"}},
		"no YAML":                          {[]string{"provider: stackit", "provider: a: b"}, 1, []string{"-:14:1: manifest: is not YAML: "}},
		"control characters":               {[]string{"name: single}", `name: "sin\e[31mgle\n"}`}, 1, []string{`Machine default/sin?[31mgle: metadata.name: is "sin\x1b[31mgle\n"`}},
		"a very long value":                {[]string{"machineType: c2i.2", "machineType: " + strings.Repeat("-", 100_000)}, 1, []string{`providerSpec.machineType: is "` + strings.Repeat("-", 80) + `..."; must be`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: []string{"validate", "-f", "-"}, env: env, stdin: manifests(t, cloud, row.changes...)}.run(t)
			got.expect(t, row.code, row.says...)
		})
	}
}

func TestValidateSecretThatIsNamed(t *testing.T) {
	cloud, env := startMock(t)
	text := manifests(t, cloud, "metadata: {name: credentials}", "metadata: {name: other}")
	invocation{args: []string{"validate", "-f", "-", "--secret", "other"}, env: env, stdin: text}.run(t).expect(t, 0, "nothing is wrong")
	got := invocation{args: []string{"validate", "-f", "-", "--secret", "elsewhere"}, env: env, stdin: text}.run(t)
	got.expect(t, 2)
	if !strings.Contains(got.stderr, "reading Secret default/elsewhere: ") {
		t.Errorf("stderr %q must say that the Secret cannot be read", got.stderr)
	}
}

func TestValidateNothingToCheck(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.yaml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		args        []string
		stdin, says string
	}{
		"empty file":        {[]string{"-f", empty}, "", "there is no MachineClass"},
		"other kinds":       {[]string{"-f", "-"}, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "Not checked, because of other kinds: 1 ConfigMap"},
		"kind of others":    {[]string{"-f", "-"}, "apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineDeployment\nmetadata: {name: a}\n", "other kinds: 1 MachineDeployment"},
		"kind of managers":  {[]string{"-f", "-"}, "apiVersion: machine.sapcloud.io/v1alpha1\nkind: MachineSet\nmetadata: {name: a}\n", "other kinds: 1 MachineSet"},
		"no such file":      {[]string{"-f", "nowhere.yaml"}, "", "nowhere.yaml"},
		"folder without":    {[]string{"-f", t.TempDir()}, "", "has no .yaml, .yml or .json file"},
		"no cluster":        {nil, "", "listing MachineClasses in namespace default: "},
		"only null objects": {[]string{"-f", "-"}, "apiVersion: v1\nkind: List\nitems: [null]\n", "there is no MachineClass"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: append([]string{"validate"}, row.args...), stdin: row.stdin}.run(t)
			if got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, row.says) {
				t.Errorf("got %+v, want exit code 2 and %q", got, row.says)
			}
		})
	}
}

func TestValidateShowEffective(t *testing.T) {
	cloud, env := startMock(t)
	text := manifests(t, cloud, goodClass, goodClass+strings.Replace(goodClass, "name: worker", "name: second", 1))
	for name, args := range map[string][]string{"validate-effective.yaml": nil, "validate-effective.json": {"-o", "json"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: append([]string{"validate", "-f", "-", "--show-effective"}, args...), env: env, stdin: text}.run(t)
			got.expect(t, 0)
			expectGolden(t, name, got.stdout)
		})
	}
}

func TestValidateWrongUsage(t *testing.T) {
	for name, row := range map[string]struct {
		args []string
		says string
	}{
		"replicas without online": {[]string{"--replicas", "3"}, "--replicas must be 1 to 10000, and needs --online"},
		"no replicas":             {[]string{"--online", "--replicas", "0"}, "--replicas must be 1 to 10000"},
		"too many replicas":       {[]string{"--online", "--replicas", "10001"}, "--replicas must be 1 to 10000"},
		"replicas in words":       {[]string{"--online", "--replicas=x"}, `invalid argument "x" for "--replicas"`},
		"online is no boolean":    {[]string{"--online=maybe"}, `invalid argument "maybe" for "--online"`},
		"effective is no boolean": {[]string{"--show-effective=2"}, `invalid argument "2" for "--show-effective"`},
		"allowed is no boolean":   {[]string{"--allow-unknown=x"}, `invalid argument "x" for "--allow-unknown"`},
		"allowed without files":   {[]string{"--allow-missing-secret"}, "--allow-missing-secret is for files: it needs -f"},
		"empty file name":         {[]string{"-f", ""}, "--filename is empty"},
		"format":                  {[]string{"-o", "wide"}, "must be one of: json, yaml"},
		"file without -f":         {[]string{"samples"}, `unknown command "samples"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: append([]string{"validate"}, row.args...)}.run(t)
			if got.code != 64 || got.stdout != "" || !strings.Contains(got.stderr, row.says) {
				t.Errorf("got %+v, want exit code 64 and %q", got, row.says)
			}
		})
	}
}

// TestValidateExamples runs the examples of --help with samples that have a key; those that
// ask a cluster are run in test/e2e.
func TestValidateExamples(t *testing.T) {
	cloud, env := startMock(t)
	folder := t.TempDir()
	copySamples(t, cloud, filepath.Join(folder, "samples"))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(folder, "mcm-stackit")); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(newOptions(genericiooptions.NewTestIOStreamsDiscard(), os.LookupEnv).newValidateCommand().Example) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || strings.Contains(line, " -n ") {
			continue
		}
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), "sh", "-c", line)
			command.Dir = folder
			command.Env = append([]string{asCommand + "=1", "HOME=" + folder, "KUBECONFIG=" + filepath.Join(folder, "none"), "PATH=" + folder + ":" + os.Getenv("PATH")}, env...)
			output, err := command.CombinedOutput()
			want := 0
			if strings.Contains(line, "--online") {
				want = 2 // a class has a service account
			}
			if command.ProcessState == nil || command.ProcessState.ExitCode() != want {
				t.Errorf("%v, want exit code %d:\n%s", err, want, output)
			}
		})
	}
}

// A file that is broken keeps nobody from learning what is wrong in the others, and before
// the place where it breaks.
func TestValidateBrokenFiles(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "apiVersion: machine.sapcloud.io/v1alpha1\nkind: MachineClass\nmetadata: {name: a}\nprovider: aws\nproviderSpec: {}\n---\nkey: [\n",
		"b.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\nstringData: {projectId: *s3cr3t}\n",
		"c.yaml": "apiVersion: machine.sapcloud.io/v1alpha1\nkind: MachineClass\nmetadata: {name: c}\nprovider: gcp\nproviderSpec: {}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := invocation{args: []string{"validate", "-f", folder}}.run(t)
	if got.code != 1 || strings.Contains(got.stdout+got.stderr, "s3cr3t") {
		t.Errorf("got %+v, want exit code 1 and no value", got)
	}
	for _, want := range []string{
		"a.yaml:4:11: MachineClass default/a: provider: is \"aws\"", "a.yaml:7:1: manifest: is not YAML",
		"b.yaml:4:25: manifest: is not YAML: a text that begins with *", "c.yaml:4:11: MachineClass default/c: provider: is \"gcp\"",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("stdout lacks %q:\n%s", want, got.stdout)
		}
	}
}
