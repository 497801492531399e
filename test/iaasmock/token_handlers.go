// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/token"

func (c *Cloud) issueToken(r *request) (any, *apiError) {
	return answerToken(r, c.tokens.Exchange)
}

func (c *Cloud) issueWorkloadToken(r *request) (any, *apiError) {
	return answerToken(r, c.tokens.ExchangeWorkload)
}

func answerToken(r *request, exchange func([]byte, token.Flaw) (token.Response, *token.Refusal)) (any, *apiError) {
	response, refusal := exchange(r.body, token.Flaw{Skew: r.fault.TokenSkew, WithoutExpiry: r.fault.TokenWithoutExpiry})
	if refusal != nil {
		// Source: package token has one beside each.
		return nil, newError(refusal.Status, "%s", refusal.Reason)
	}
	return response, nil
}
