// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
)

func TestReportShowsNothingOfAnybody(t *testing.T) {
	secrets := []string{
		"10000000-0000-4000-8000-000000000001", "10000000000040008000000000000001", "sa-1@sa.stackit.cloud",
		"eyJhbGciOiJSUzUxMiJ9.eyJzdWIiOiIxIn0.c2ln", "10.250.0.7", "fa:16:3e:aa:bb:cc", "2001:db8::12:34", "fe80::1", "2001:db8:0:0:0:0:12:34", "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
	}
	r := Report{Run: "r", Endpoint: "https://iaas.example.com", Region: "eu01", MachineType: "c2i.1", Result: "Red: " + secrets[0], Findings: []string{secrets[1] + " and " + secrets[2]}}
	for _, secret := range secrets {
		r.Rows = append(r.Rows, Row{Assumption: "a | b", Seen: "seen " + secret + "\nlater"})
	}
	var out strings.Builder
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	for _, secret := range append(secrets, "MIIE", "12:34") {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%q is in\n%s", secret, out.String())
		}
	}
	if !strings.HasPrefix(out.String(), "# Run r against https://iaas.example.com\n") {
		t.Errorf("does not say against what:\n%s", out.String())
	}
	if rows := strings.Count(out.String(), "\n| a \\| b | seen ("); rows != len(secrets) {
		t.Errorf("%d rows in\n%s", rows, out.String())
	}
}

func TestHide(t *testing.T) {
	var out strings.Builder
	text := "project 1234 has server 5678\n"
	if n, err := Hide(&out, "1234").Write([]byte(text)); err != nil || n != len(text) || out.String() != "project (hidden) has server 5678\n" {
		t.Errorf("%d %v %q", n, err, out.String())
	}
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAClosedTerminalEndsNothing(t *testing.T) {
	if n, err := Hide(closed{}, "1234").Write([]byte("text")); err != nil || n != 4 {
		t.Error(n, err)
	}
}

func TestExchanges(t *testing.T) {
	var out strings.Builder
	x := NewExchanges(&out, "run-")
	const one, two = "10000000-0000-4000-8000-000000000001", "10000000-0000-4000-8000-000000000002"
	write := func(method, path string, status int, header http.Header, body string) {
		x.write(Exchange{Method: method, Path: path, Answer: api.Answer{Status: status, Header: header, Body: []byte(body)}})
	}
	write("GET", "/servers", 200, http.Header{"Date": {"today"}, "Set-Cookie": {"secret"}, "X-Auth-Token": {"gAAAAsecret"}},
		`{"items":[{"id":"`+one+`","name":"run-a","userData":"c2VjcmV0"},{"id":"`+two+`","name":"database"}]}`)
	write("DELETE", "/servers/"+one, 502, nil, "<html> of 10.0.0.1")
	write("POST", "/servers", 201, nil, `{"id":"`+two+`","name":"database"}`)
	want := []string{
		`"headers":{"Date":"today","Set-Cookie":"","X-Auth-Token":""},"answer":{"items":[{"id":"(ID 1)","name":"run-a","userData":"(8 characters)"},"(and 1 without a name of the run)"]}`,
		`"path":"/servers/(ID 1)","status":502,"answer":"<html> of (address)"`,
		`"status":201,"answer":"(without a name of the run)"`,
	}
	lines := strings.Split(out.String(), "\n")
	for i, text := range want {
		if !strings.Contains(lines[i], text) {
			t.Errorf("%s is not in %s", text, lines[i])
		}
	}
	if x.Err() != nil || len(lines) != 4 {
		t.Errorf("%v, %q", x.Err(), lines)
	}
}
