// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import "testing"

// Bodies that STACKIT's services and the gateway before them have been seen to answer.
func TestWhatIsTheAPIsWord(t *testing.T) {
	for body, want := range map[string]struct {
		text     string
		isOfIaaS bool
	}{
		`{"code":404,"msg":"resource not found: keypair"}`: {"resource not found: keypair", true},
		`{"code":"404","msg":"a code as text"}`:            {"a code as text", true},
		`{"msg":"no code"}`:                                {"no code", false},
		`{"timestamp":"t","path":"/v2","status":403,"error":"Forbidden","message":"Unauthorized"}`: {"Unauthorized", false},
		`{"status":401,"message":"Unauthenticated token"}`: {"Unauthenticated token",
			false},
		`{"code":404,"message":"not the IaaS API's form"}`: {"not the IaaS API's form", false},
		`{"code":403,"msg":""}`:                            {},
		`{"code":403,"msg":7}`:                             {},
		`{"error":"Forbidden"}`:                            {},
		`{"error":{"message":"nested"}}`:                   {},
		`[{"code":403,"msg":"a list"}]`:                    {},
		`"a text"`:                                         {},
		`null`:                                             {},
		``:                                                 {},
		`<html><h1>403 Forbidden</h1></html>`:              {},
		`Jwks doesn't have key to match kid or alg`:        {},
		`{"code":403,"msg":"cut off`:                       {},
		`{"code":403,"msg":"one"}{"code":1,"msg":"2"}`:     {},
	} {
		if text, isOfIaaS := Message([]byte(body)); text != want.text || isOfIaaS != want.isOfIaaS {
			t.Errorf("%s is %q, %t; want %q, %t", body, text, isOfIaaS, want.text, want.isOfIaaS)
		}
	}
}
