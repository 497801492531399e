// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"flag"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Rows mostly wait for the limit of reads.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// key is one that a mock accepts after registered: making one is slow.
var key = sync.OnceValues(func() ([]byte, error) {
	return iaasmock.New().NewServiceAccountKey(iaasmock.DefaultProjectID)
})

// good is testdata/good.yaml with a key. Pairs of changes replace text.
func good(t *testing.T, changes ...string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	key, err := key()
	if err != nil {
		t.Fatal(err)
	}
	return changed(t, strings.Replace(string(text), "KEY", strconv.Quote(string(key)), 1), changes...)
}

func changed(t *testing.T, text string, changes ...string) string {
	t.Helper()
	for i := 0; i < len(changes); i += 2 {
		after := strings.Replace(text, changes[i], changes[i+1], 1)
		if after == text {
			t.Fatalf("%q does not exist", changes[i])
		}
		text = after
	}
	return text
}

// class is the MachineClass of good.yaml.
func class(t *testing.T) string { return strings.Split(good(t), "---\n")[1] + "---\n" }

// second adds a class of another name behind a class.
func second(text string) string {
	return text + strings.Replace(text, "name: worker", "name: second", 1)
}

// offline reaches no cluster and no API.
func offline() *account.Access {
	return &account.Access{Sessions: &spi.PluginSPIImpl{}, Namespace: "default", Clock: clock.RealClock{}}
}

// online reaches the mock with the key.
func online(t *testing.T, options ...iaasmock.Option) (*account.Access, *iaasmock.Cloud) {
	t.Helper()
	cloud := iaasmock.New(options...)
	key, err := key()
	if err != nil {
		t.Fatal(err)
	}
	if err := cloud.RegisterServiceAccountKey(iaasmock.DefaultProjectID, key); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	return &account.Access{
		Sessions:  &spi.PluginSPIImpl{Config: spi.Config{Endpoint: server.URL, TokenURL: server.URL + "/oauth/v2/token"}},
		Namespace: "default", ReadTimeout: 30 * time.Second, Clock: clock.RealClock{},
	}, cloud
}

// run checks a text as standard input.
func run(t *testing.T, access *account.Access, text string, options Options) *Result {
	t.Helper()
	options.Stdin, options.Files = strings.NewReader(text), resource.FilenameOptions{Filenames: []string{"-"}}
	result, err := Run(t.Context(), access, options)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// expect wants an exit code and these texts among the findings, and no secret.
func expect(t *testing.T, result *Result, code int, says ...string) {
	t.Helper()
	var lines []string
	for _, found := range result.Findings {
		lines = append(lines, found.String())
	}
	text := strings.Join(lines, "\n") + "\n"
	if got := result.Findings.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	for _, want := range says {
		if !strings.Contains(text, want) {
			t.Errorf("no finding has %q", want)
		}
	}
	for _, secret := range []string{"the-canary", "PRIVATE KEY", "eyJ", "s3cr3t"} {
		if strings.Contains(text, secret) {
			t.Errorf("a secret is told: %q", secret)
		}
	}
	if len(says) == 0 && code == 0 && len(result.Findings) > 0 {
		t.Error("there are findings")
	}
	if t.Failed() {
		t.Logf("findings:\n%s", text)
	}
}

// row is a text with changes, and what is found in it: nothing with exit code 0 and no texts.
type row struct {
	changes []string
	code    int
	says    []string
}
