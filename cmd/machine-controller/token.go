// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/constants"
	"github.com/golang-jwt/jwt/v5"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/clientcmd"
)

// shortLived is the lifetime up to which a token is not watched: its issuer renews it all the time, as Gardener does
// with tokens of 12 hours. The alert for other tokens fires this long before they expire.
const shortLived = 7 * 24 * time.Hour

// targetToken is a metric with the expiry time of the target cluster's token.
type targetToken struct {
	// kubeconfig is --target-kubeconfig.
	kubeconfig string
	expiry     *prometheus.Desc
}

func newTargetToken(kubeconfig string) *targetToken {
	return &targetToken{kubeconfig: kubeconfig, expiry: prometheus.NewDesc("stackit_target_token_expiry_timestamp_seconds",
		"Expiry of the token for the target cluster, in Unix seconds. Absent for a token issued for a week or less, "+
			"and for a login without a token.", nil, nil)}
}

// Describe implements prometheus.Collector.
func (t *targetToken) Describe(descs chan<- *prometheus.Desc) { descs <- t.expiry }

// Collect implements prometheus.Collector.
func (t *targetToken) Collect(metrics chan<- prometheus.Metric) {
	if end := t.end(); !end.IsZero() {
		metrics <- prometheus.MustNewConstMetric(t.expiry, prometheus.GaugeValue, float64(end.Unix()))
	}
}

// end returns the token's exp; zero if there is no token to watch. client-go rereads the token's file each minute.
func (t *targetToken) end() time.Time {
	if t.kubeconfig == "" || t.kubeconfig == constants.TargetKubeconfigDisabledValue {
		return time.Time{}
	}
	config, err := clientcmd.BuildConfigFromFlags("", t.kubeconfig)
	if err != nil {
		return time.Time{}
	}
	var claims jwt.RegisteredClaims
	_, _, err = jwt.NewParser().ParseUnverified(strings.TrimSpace(config.BearerToken), &claims)
	if err != nil || claims.ExpiresAt == nil ||
		claims.IssuedAt != nil && claims.ExpiresAt.Sub(claims.IssuedAt.Time) <= shortLived {
		return time.Time{}
	}
	return claims.ExpiresAt.Time
}
