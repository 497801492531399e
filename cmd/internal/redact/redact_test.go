// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestVerbosityIsCapped(t *testing.T) {
	for given, want := range map[string]string{"0": "0", "7": "7", "8": "7", "100": "7"} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		v, modules := flags.String("v", given, ""), flags.String("vmodule", "round_trippers=9", "")
		capVerbosity(flags)
		if *v != want || *modules != "" {
			t.Errorf("--v=%s becomes %s, --vmodule %q, want %s and nothing", given, *v, *modules, want)
		}
	}
}

func TestRedact(t *testing.T) {
	args := []any{"replacing", "<<BOOTSTRAP_TOKEN>>", "abc123.0123456789abcdef", 5,
		errors.New("refused: Bearer eyJhbGciOiJSUzUxMiJ9.eyJpc3MiOiJhIn0.c2ln"), "stackit://a/b", "1.2.3-alpha.0123456789",
		"key: -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- end",
		[]byte("-----BEGIN PRIVATE KEY-----\nMIIE")}
	want := []any{"replacing", "<<BOOTSTRAP_TOKEN>>", redacted, 5, "refused: Bearer " + redacted, "stackit://a/b",
		"1.2.3-alpha.0123456789",
		"key: " + redacted + " end", redacted}
	if diff := cmp.Diff(want, redact(args)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if args[2] != "abc123.0123456789abcdef" {
		t.Error("the caller's arguments were changed")
	}
}
