// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// testdata/refusals*.json hold requests and the messages of kin-openapi v0.152.0, which
// STACKIT uses, for them and the API document. Where STACKIT is known to give a schema
// another name, the message has that name.
func TestRefusalsHaveSTACKITsMessages(t *testing.T) {
	rows := refusals(t)
	m := openMock(t)
	for _, row := range rows {
		name := strings.ReplaceAll(fmt.Sprintf("%s %s %.90s", row.Method, strings.TrimPrefix(row.Path, inRegion), row.Body), "/", "_")
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), row.Method, m.url+row.Path, strings.NewReader(row.Body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", row.ContentType)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			var answer struct {
				Code int
				Msg  string
			}
			if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
				t.Fatal(err)
			}
			want := map[string]int{"method not allowed": 405, "no matching operation was found": 404}[row.Message]
			if want == 0 {
				want = 400
			}
			if response.StatusCode != want || answer.Code != want {
				t.Errorf("answered %d with code %d, want %d", response.StatusCode, answer.Code, want)
			}
			if answer.Msg != row.Message {
				t.Errorf("said  %s\n want %s", answer.Msg, row.Message)
			}
		})
	}
	if got := len(m.cloud.Servers()) + len(m.cloud.NICs()) + len(m.cloud.Volumes()); got != 3 {
		t.Errorf("%d resources, want the catalogue's 3", got)
	}
}

type refusal struct{ Method, Path, ContentType, Body, Message string }

func refusals(t *testing.T) []refusal {
	t.Helper()
	files, err := filepath.Glob("testdata/refusals*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no refusals: %v", err)
	}
	var all []refusal
	for _, file := range files {
		encoded, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rows []refusal
		if err := json.Unmarshal(encoded, &rows); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, rows...)
	}
	return all
}

func TestCreateServerRefusals(t *testing.T) {
	bootOf := func(size int, kind, id string) object {
		return object{"bootVolume": object{"size": size, "source": object{"type": kind, "id": id}}}
	}
	for _, row := range []struct {
		name    string
		change  object
		code    int
		message string
	}{
		{"unknown machine type", object{"machineType": "c2i.3"}, 400, "machine type is not valid"},
		{"unknown source type", bootOf(20, "tape", nothing), 400, `source type "tape" is not supported`},
		{"boot volume without size", bootOf(0, "image", iaasmock.DefaultImageID), 400, "boot device size is not valid or missing"},
		{"boot volume too large", bootOf(16001, "image", iaasmock.DefaultImageID), 400, "boot device size is not valid or missing"},
		{"label value too long", object{"labels": object{"a": strings.Repeat("x", 64)}}, 400, "63"},
		{"label key too long", object{"labels": object{strings.Repeat("x", 64): "a"}}, 400, "63"},
		{"label that is no string", object{"labels": object{"a": 5}}, 400, "must be a string"},
		{"reserved label", object{"labels": object{"stackit-x": "a"}}, 400, "reserved"},
		{"metadata too long", object{"metadata": object{"a": strings.Repeat("x", 256)}}, 400, "255"},
		{"userData in wrong base64", object{"userData": "abcde"}, 400, "base64"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := openMock(t)
			before := m.cloud.NICs()
			answer := m.want(row.code, "POST", inRegion+"/servers", serverBody(row.change))
			if message := answer["msg"].(string); !strings.Contains(message, row.message) || answer["code"] != float64(row.code) {
				t.Errorf("answered %v, want %q", answer, row.message)
			}
			if len(m.cloud.Servers()) > 0 || len(m.cloud.NICs()) != len(before) || m.cloud.History() != (iaasmock.Totals{}) {
				t.Error("something was made all the same")
			}
		})
	}
}

func TestInUse(t *testing.T) {
	m := openMock(t)
	id := m.create(object{"volumes": []string{iaasmock.DefaultVolumeID}})
	m.want(409, "DELETE", inRegion+"/volumes/"+iaasmock.DefaultVolumeID, nil)
	m.want(204, "DELETE", inRegion+"/networks/"+iaasmock.DefaultNetworkID+"/nics/"+m.server(id).NICIDs[0], nil)
	if nics := m.server(id).NICIDs; len(nics) > 0 {
		t.Errorf("the server still has %v", nics)
	}
}

func TestUnknownCalls(t *testing.T) {
	m := openMock(t)
	for _, row := range []struct {
		code         int
		method, path string
	}{
		{404, "GET", "/v1"}, {404, "GET", "/v2"}, {404, "GET", inRegion + "/backups"}, {404, "GET", inRegion + "//servers"},
		{404, "POST", inRegion + "/servers/" + iaasmock.DefaultNICID + "/backup"},
		{405, "DELETE", inRegion + "/servers"}, {405, "GET", "/token"},
	} {
		answer := m.want(row.code, row.method, row.path, nil)
		if answer["code"] != float64(row.code) || answer["msg"] == "" {
			t.Errorf("%s %s: %v", row.method, row.path, answer)
		}
	}
	if counts := m.cloud.CallCounts(); counts["Unknown"] != 7 || len(counts) != 1 {
		t.Errorf("counted %v", counts)
	}
}
