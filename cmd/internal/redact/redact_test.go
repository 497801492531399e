// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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

func TestErrorWithoutSecrets(t *testing.T) {
	err := Error(errors.New("open /a/-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n: no such file"))
	if want := "open /a/<redacted>\n: no such file"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	err = Error(errors.New("unable to read client-key /a/LS0tLS1CRUdJTiBQUklWQVRFIEtFWQ== for u"))
	if want := "unable to read client-key /a/<redacted> for u"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if harmless := errors.New("a"); !errors.Is(Error(harmless), harmless) || Error(nil) != nil {
		t.Error("an error without a secret was changed")
	}
}

func TestArgumentsThatAreContent(t *testing.T) {
	const lines = "apiVersion: v1\nkind: Config"
	long := strings.Repeat("a/", 150)
	for name, row := range map[string]struct {
		args []string
		says string
	}{
		"value of a flag":         {[]string{"list", "--kubeconfig", lines}, "--kubeconfig is the content of"},
		"value after =":           {[]string{"list", "--kubeconfig=" + lines}, "--kubeconfig is"},
		"value of a short flag":   {[]string{"-f", lines}, "-f is"},
		"value at a short flag":   {[]string{"-f" + lines}, "-f is"},
		"argument":                {[]string{"validate", lines}, "an argument is"},
		"argument after a value":  {[]string{"--secret", "a", lines}, "an argument is"},
		"a PEM file":              {[]string{"-----BEGIN PRIVATE KEY-----\nMIIE==\n"}, "an argument is"},
		"JSON on one line":        {[]string{"--secret", `{"kind":"Secret","data":{}}`}, "--secret is"},
		"a token":                 {[]string{"--secret", "eyJhbGciOiJS.eyJpc3MiOiJh.c2ln"}, "--secret is"},
		"a long value":            {[]string{"--secret", strings.Repeat("A/", 150)}, "--secret is"},
		"a key in base64":         {[]string{"--client-key", "LS0tLS1CRUdJTiBQUklWQVRFIEtFWQ=="}, "--client-key is"},
		"a token as the token":    {[]string{"--token", "eyJhbGciOiJS.eyJpc3MiOiJh.c2ln" + long}, ""},
		"a signed URL":            {[]string{"-f", "https://a.example/b?signature=" + long}, ""},
		"many files":              {[]string{"-f", strings.Repeat("a/b.yaml,", 100)}, ""},
		"a flag, file and folder": {[]string{"-v=4", "-f", "a b/{c,d}.yaml", "--dry-run", "/"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckArguments(row.args)
			if (err == nil) != (row.says == "") || err != nil && !strings.HasPrefix(err.Error(), row.says) {
				t.Errorf("got %v, want %q", err, row.says)
			}
		})
	}
}

// A long path is no content if the file exists.
func TestLongPath(t *testing.T) {
	folder := filepath.Join(t.TempDir(), strings.Repeat("a", 200), strings.Repeat("b", 200))
	if !IsContent(folder) {
		t.Error("a long path without a file is taken for a path")
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	if IsContent(folder) {
		t.Error("the path of a folder is taken for content")
	}
}
