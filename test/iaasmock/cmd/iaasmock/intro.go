// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"text/template"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var intro = template.Must(template.New("intro").Parse(`STACKIT IaaS API mock on {{.URL}} (Ctrl-C stops it)

  project {{.Project}}   region {{.Region}}   network {{.Network}}
  image   {{.Image}}   machine type {{.MachineType}}   key pair {{.Keypair}}
{{if .KeyFile}}
Service account key written to {{.KeyFile}}; its token endpoint is {{.URL}}/token
{{end}}
Console: {{.URL}}/ in a browser; the state as JSON:
  curl -s {{.URL}}/admin/state

Active faults (--seed {{.Seed}} repeats this run):
  curl -s {{.URL}}/admin/faults
{{if .NoAuth}}
Create a server, see it boot, delete it:
  API={{.URL}}/v2/projects/{{.Project}}/regions/{{.Region}}
  curl -s $API/servers -H 'Content-Type: application/json' -d '{"name":"server1","machineType":"{{.MachineType}}","networking":{"networkId":"{{.Network}}"},"bootVolume":{"size":20,"deleteOnTermination":true,"source":{"type":"image","id":"{{.Image}}"}}}'
  curl -s "$API/servers?details=true"
  curl -s -X DELETE $API/servers/<id>
{{else}}
Calls need a token. To try the API with curl, start with --no-auth.
{{end}}
Environment for this project's driver:
  export STACKIT_IAAS_ENDPOINT={{.URL}} STACKIT_TOKEN_BASEURL={{.URL}}/token{{if .NoAuth}} STACKIT_NO_AUTH=true{{end}}
`))

func printIntro(out io.Writer, url string, o options, seed uint64) {
	// A closed terminal is no reason to stop serving.
	_ = intro.Execute(out, map[string]any{
		"URL": url, "NoAuth": o.noAuth, "KeyFile": o.keyFile, "Seed": seed,
		"Project": iaasmock.DefaultProjectID, "Region": iaasmock.DefaultRegion, "Network": iaasmock.DefaultNetworkID,
		"Image": iaasmock.DefaultImageID, "MachineType": iaasmock.DefaultMachineType, "Keypair": iaasmock.DefaultKeypairName,
	})
}
