// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/google/go-cmp/cmp"
	"github.com/stackitcloud/stackit-sdk-go/core/oapierror"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

// link of Markdown, relative to kubernetes/.
var link = regexp.MustCompile(`\[([^\]]*)\]\(\.\./([^)#]*)[^)]*\)`)

// documentedRemedies returns the rows of the table of kubernetes/runbooks.md as plain text.
func documentedRemedies(t *testing.T) [][3]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "kubernetes", "runbooks.md"))
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
		t.Errorf("remedies differ from kubernetes/runbooks.md (-document +code):\n%s", diff)
	}
}

// answered is what the manager is told of a call that the API answered.
func answered(call string, code int, message string) (codes.Code, string) {
	return provider.Classify(provider.NewAPIError(call, nil, &oapierror.GenericOpenAPIError{
		StatusCode: code, Body: fmt.Appendf(nil, `{"code":%d,"msg":%q}`, code, message)}))
}

func TestRemedyForAnAnswerOfTheAPI(t *testing.T) {
	const creating, listing = "creating a server", "listing servers"
	for _, row := range []struct {
		call    string
		code    int
		message string
		cause   string
	}{
		{creating, 400, "The affinity group policy is not supported", "a value that only the cloud"},
		{creating, 400, "boot device size is not valid or missing", "the disk has no size"},
		{creating, 400, "machine type is not valid", "the class's machine type"},
		{creating, 400, "Quota exceeded for cores", "the project's quota"},
		{creating, 500, "No valid host was found", "no capacity"},
		{creating, 404, "image not found", "an image, network"},
		{creating, 409, "in use", "a NIC or volume"},
		{"deleting a server", 409, "busy", "the cloud is working"},
		{listing, 401, "", "the key is wrong"},
		{listing, 403, "", "the service account may not"},
		{listing, 429, "", "the API is busy"},
		{listing, 503, "", "the API is busy"},
	} {
		t.Run(fmt.Sprint(row.call, row.code, row.message), func(t *testing.T) {
			wantCause(t, row.cause)(answered(row.call, row.code, row.message))
		})
	}
}

// wantCause returns what checks the cause that is found for a code and text.
func wantCause(t *testing.T, want string) func(codes.Code, string) {
	return func(code codes.Code, text string) {
		t.Helper()
		cause := ""
		if found := remedyFor(code, text); found != nil {
			cause = found.Cause
		}
		if !strings.HasPrefix(cause, want) || (want == "") != (cause == "") {
			t.Errorf("%s %q has the cause %q, want one that begins with %q", code, text, cause, want)
		}
	}
}

// The texts are made of those that the driver's errors are made of.
func TestRemedyFor(t *testing.T) {
	otherProject := func() string {
		_, err := providerid.Parse("stackit://d61a8564-c8dd-4ffb-bc15-143e7d0c85ed/1", "2")
		return "machine worker-1: " + err.Error()
	}
	for text, row := range map[string]struct {
		code  codes.Code
		cause string
	}{
		apis.SpecPath.Child("machineType").String() + `: Required value: must be set`: {codes.InvalidArgument, "wrong values"},
		apis.SecretPath.Child("projectId").String() + `: Invalid value: must be set`:  {codes.InvalidArgument, "wrong values"},
		provider.TextClassProvider + `: Unsupported value`:                            {codes.InvalidArgument, "the class is another"},
		provider.TextMachineName + `: Invalid value`:                                  {codes.InvalidArgument, "the name is too long"},
		otherProject():                                                             {codes.InvalidArgument, "the Secret now names another"},
		`server 1: ` + provider.TextNotAllowed:                                     {codes.Uninitialized, "the server runs"},
		`server 1: ` + provider.TextNoAddress:                                      {codes.Unavailable, "the server runs"},
		`listing servers: dial: connect: connection refused`:                       {codes.Unavailable, "the API is busy"},
		provider.TextLate + `: server 1 is CREATING`:                               {codes.DeadlineExceeded, "the server boots"},
		provider.TextLate + `: ` + fmt.Sprintf(provider.TextMayBeSent, "worker-1"): {codes.DeadlineExceeded, "the answer to a request was lost"},
		fmt.Sprintf(provider.TextTwoDeletes, "1") + `, but it is ACTIVE`:           {codes.Aborted, "the cloud is working"},
		fmt.Sprintf(provider.TextClusterUnknown, "class-a") + `, so that`:          {codes.FailedPrecondition, "the class's label"},
		fmt.Sprintf(provider.TextUpdateIgnored, "1") + `: wanted`:                  {codes.Internal, "the API took the update"},
		`something else`:            {codes.Unavailable, ""},
		`Quota exceeded under them`: {codes.Internal, ""},
	} {
		t.Run(text, func(t *testing.T) { wantCause(t, row.cause)(row.code, text) })
	}
}
