// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"bytes"
	"encoding/json"
	"net/http"
)

func writeAdmin(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", jsonContentType)
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(body)
}

// refuse answers with an error in the API's form.
func refuse(w http.ResponseWriter, err *apiError) { writeAdmin(w, err.Code, err) }

// readAction decodes the body of an action; unknown fields are refused.
func readAction(r *http.Request, into any) *apiError {
	body, err := readBody(r)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return badRequest("body: %v", err)
	}
	if decoder.More() {
		return badRequest("body: more than one value")
	}
	return nil
}
