// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/prometheus/client_golang/prometheus"
)

func TestTargetToken(t *testing.T) {
	const day = 24 * time.Hour
	issued := time.Now().Add(-3 * day).Truncate(time.Second)
	token := func(claims jwt.MapClaims) string {
		signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte("key"))
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	const byFile = "tokenFile: token"
	for name, row := range map[string]struct {
		login, token string
		// want is when the token expires after issued; 0 for no series.
		want time.Duration
	}{
		"of 30 days": {byFile, token(jwt.MapClaims{"iat": issued.Unix(), "exp": issued.Add(30 * day).Unix()}) + "\n",
			30 * day},
		"expired": {byFile, token(jwt.MapClaims{"iat": issued.Add(-30 * day).Unix(), "exp": issued.Unix()}),
			time.Nanosecond},
		"of 8 days":     {byFile, token(jwt.MapClaims{"iat": issued.Unix(), "exp": issued.Add(8 * day).Unix()}), 8 * day},
		"of a week":     {byFile, token(jwt.MapClaims{"iat": issued.Unix(), "exp": issued.Add(7 * day).Unix()}), 0},
		"as Gardener's": {byFile, token(jwt.MapClaims{"iat": issued.Unix(), "exp": issued.Add(day / 2).Unix()}), 0},
		"without iat":   {byFile, token(jwt.MapClaims{"exp": issued.Add(day).Unix()}), day},
		"without exp":   {byFile, token(jwt.MapClaims{"iat": issued.Unix()}), 0},
		"no JWT":        {byFile, "canary", 0},
		"no file":       {"tokenFile: missing", "", 0},
		"no token":      {"client-certificate: cert, client-key: key", "", 0},
		"no kubeconfig": {"}", "", 0},
		"in the config": {"token: " + token(jwt.MapClaims{"exp": issued.Add(9 * day).Unix()}), "", 9 * day},
		"of a program":  {"exec: {command: touch, args: [made], apiVersion: client.authentication.k8s.io/v1}", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for file, content := range map[string]string{"token": row.token, "kubeconfig": fmt.Sprintf(`{
apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "https://x"}}], users: [{name: u, user: {%s}}]}`, row.login)} {
				if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(folder)
			registry := prometheus.NewRegistry()
			registry.MustRegister(newTargetToken("kubeconfig"))
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case row.want == 0 && len(families) > 0:
				t.Errorf("%v, want no series", families)
			case row.want > 0 &&
				(len(families) != 1 || families[0].GetMetric()[0].GetGauge().GetValue() != float64(issued.Add(row.want).Unix())):
				t.Errorf("%v, want %d", families, issued.Add(row.want).Unix())
			}
		})
	}
	for _, flag := range []string{"", "none"} {
		if end := newTargetToken(flag).end(); !end.IsZero() {
			t.Errorf("--target-kubeconfig=%s: %s", flag, end)
		}
	}
}
