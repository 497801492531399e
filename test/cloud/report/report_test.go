// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"strings"
	"testing"
)

func TestReportShowsNothingOfAnybody(t *testing.T) {
	secrets := []string{
		"10000000-0000-4000-8000-000000000001", "10000000000040008000000000000001", "sa-1@sa.stackit.cloud",
		"eyJhbGciOiJSUzUxMiJ9.eyJzdWIiOiIxIn0.c2ln", "10.250.0.7", "fa:16:3e:aa:bb:cc", "2001:db8::12:34", "fe80::1", "2001:db8:0:0:0:0:12:34", "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
	}
	r := Report{Run: "r", Endpoint: "https://iaas.example.com", Region: "eu01", MachineType: "c2i.1", Result: "Red: " + secrets[0], Findings: []string{secrets[1] + " and " + secrets[2]}}
	for _, secret := range secrets {
		r.Rows = append(r.Rows, Row{Assumption: "a | b", Seen: "seen " + secret + "\nlater", Where: []string{"pkg/provider/gone.go"}})
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
	if n, err := Hide(&out, "1234", "").Write([]byte(text)); err != nil || n != len(text) || out.String() != "project (hidden) has server 5678\n" {
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
