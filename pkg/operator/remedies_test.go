// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/google/go-cmp/cmp"
)

// link of Markdown, relative to samples/.
var link = regexp.MustCompile(`\[([^\]]*)\]\(\.\./([^)#]*)[^)]*\)`)

// documentedRemedies returns the rows of the table of samples/README.md as plain text.
func documentedRemedies(t *testing.T) [][3]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "samples", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| Code, and what the text says | Cause | Remedy |\n|---|---|---|\n")
	var rows [][3]string
	for line := range strings.Lines(table) {
		line = strings.ReplaceAll(link.ReplaceAllString(strings.TrimSpace(line), "$1 ($2)"), "`", "")
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 {
			break
		}
		rows = append(rows, [3]string{strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])})
	}
	return rows
}

func TestRemediesAreThoseOfTheDocument(t *testing.T) {
	var got [][3]string
	for _, remedy := range remedies {
		var codes, says []string
		for _, code := range remedy.codes {
			codes = append(codes, code.String())
		}
		for _, saying := range remedy.says {
			says = append(says, saying.shown)
		}
		first := strings.Join(codes, ", ") + ": " + strings.Join(says, ", ")
		if len(codes) == 0 {
			first = "nothing at all, phase empty"
		}
		got = append(got, [3]string{first, remedy.Cause, remedy.Remedy})
	}
	if diff := cmp.Diff(documentedRemedies(t), got); diff != "" {
		t.Errorf("remedies differ from samples/README.md (-document +code):\n%s", diff)
	}
}

// The texts are those that the driver writes.
func TestRemedyFor(t *testing.T) {
	for text, row := range map[string]struct {
		code  codes.Code
		cause string
	}{
		`providerSpec.machineType: Required value: must be set`:                                                                                   {codes.InvalidArgument, "wrong values"},
		`secret.projectId: Invalid value: must be a UUID`:                                                                                         {codes.InvalidArgument, "wrong values"},
		`the API refused the request, check the providerSpec: creating a server: status 400: machine type is not valid`:                           {codes.InvalidArgument, "a value that only the cloud"},
		`the API refused the request, check the providerSpec: creating a server: status 400: boot device size is not valid or missing`:            {codes.InvalidArgument, "the disk has no size"},
		`something the providerSpec or Secret names (project, image, network, key pair, ...) was not found: creating a server: status 404: image`: {codes.InvalidArgument, "an image, network"},
		`machine worker-1: providerID "stackit://1/2" is of project 1, but the Secret's project is 3`:                                             {codes.InvalidArgument, "the Secret now names another"},
		`Quota exceeded: creating a server: status 403: Quota exceeded for cores`:                                                                 {codes.ResourceExhausted, "the project's quota"},
		`server 1: its NICs do not carry all allowedAddresses`:                                                                                    {codes.Uninitialized, "the server runs"},
		`server 1: not all of its NICs have an address`:                                                                                           {codes.Unavailable, "the server runs"},
		`listing servers: status 503`:                        {codes.Unavailable, "the API is busy"},
		`listing servers: dial: connect: connection refused`: {codes.Unavailable, "the API is busy"},
		`not done in time, will go on with the next call: a request for a server of machine worker-1 may have been sent, and no server has shown`: {codes.DeadlineExceeded, "the answer to a request was lost"},
		`not done in time, will go on with the next call: server 1 is CREATING`:                                                                   {codes.DeadlineExceeded, "the server boots"},
		`two DELETEs of server 1 were accepted, but it is ACTIVE`:                                                                                 {codes.Aborted, "the cloud is working"},
		`something else`:            {codes.Unavailable, ""},
		`Quota exceeded under them`: {codes.Internal, ""},
	} {
		t.Run(text, func(t *testing.T) {
			cause := ""
			if found := remedyFor(row.code, text); found != nil {
				cause = found.Cause
			}
			if !strings.HasPrefix(cause, row.cause) || (row.cause == "") != (cause == "") {
				t.Errorf("got cause %q, want one that begins with %q", cause, row.cause)
			}
		})
	}
}
