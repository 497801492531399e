// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"iter"
	"strconv"
	"strings"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
)

// maxMessage is how much of a message of the API is shown, in bytes.
const maxMessage = 4 << 10

// minRun is the length, in bytes, from which a part of userData that the API repeats is
// hidden. No secret worth stealing is shorter: a bootstrap token has 23.
const minRun = 16

// run is that many bytes of a text.
type run [minRun]byte

// hiding makes a message of the API fit for logs and for a Machine's status, which many may
// read. The zero value is for calls that send no userData.
type hiding struct {
	userData string
	// others are the values that the request sends beside userData. The manager writes names
	// into userData, and a message that does not say which thing is wrong helps nobody.
	others []string
}

// hidingFor returns what hides the request's userData.
func hidingFor(request *ServerRequest, payload iaas.CreateServerPayload) hiding {
	payload.UserData = nil
	var sent any
	// What cannot be read leaves no others, and more of the message hidden.
	if raw, err := json.Marshal(payload); err == nil {
		_ = json.Unmarshal(raw, &sent)
	}
	return hiding{request.Spec.UserData, textsOf(sent)}
}

// textsOf returns the texts in decoded JSON, keys included.
func textsOf(decoded any) []string {
	switch value := decoded.(type) {
	case string:
		return []string{value}
	case []any:
		var all []string
		for _, item := range value {
			all = append(all, textsOf(item)...)
		}
		return all
	case map[string]any:
		var all []string
		for key, item := range value {
			all = append(append(all, key), textsOf(item)...)
		}
		return all
	}
	return nil
}

// shown returns what may be shown of a message of the API.
func (h hiding) shown(message string) string {
	message = message[:min(len(message), maxMessage)]
	if h.userData != "" {
		message = withoutUserData(message, h.userData, h.others)
	}
	return withoutMisleadingWords(strings.ToValidUTF8(message, "?"))
}

// withoutUserData replaces each run of minRun or more bytes that the message shares with a
// form of userData. Where others occur in the message, they stay, and runs end there. Others
// that are shorter than a run do not count: they could cut userData into harmless pieces.
func withoutUserData(message, userData string, others []string) string {
	if len(message) < minRun {
		return message // to read a megabyte takes 0.1 s
	}
	shared := map[run]bool{} // the runs of the message, and whether userData has them
	for found := range runsOf(message, others) {
		shared[found] = false
	}
	for _, form := range formsOf(userData) {
		for end := minRun; end <= len(form); end++ {
			found := run(form[end-minRun : end])
			if known, ours := shared[found]; ours && !known {
				shared[found] = true
			}
		}
	}
	var text strings.Builder
	shown := 0 // what of the message is written, or hidden
	for found, begin := range runsOf(message, others) {
		if !shared[found] {
			continue
		}
		if shown == 0 || begin > shown {
			text.WriteString(message[shown:begin] + "(userData)")
		}
		shown = begin + minRun
	}
	return text.String() + message[shown:]
}

// formsOf returns userData in the forms in which an API repeats it: as it is, as it was
// sent, and quoted, as Go and as JSON do it, which as a rule is the same.
func formsOf(userData string) [][]byte {
	raw := []byte(userData)
	quoted := strconv.AppendQuote(nil, userData)
	forms := [][]byte{raw, base64.StdEncoding.AppendEncode(nil, raw), quoted}
	if asJSON, err := json.Marshal(userData); err == nil && !bytes.Equal(asJSON, quoted) {
		forms = append(forms, asJSON)
	}
	return forms
}

// occurrences marks the bytes of the message that belong to one of the values.
func occurrences(message string, values []string) []bool {
	marked := make([]bool, len(message))
	for _, value := range values {
		if len(value) < minRun {
			continue
		}
		for begin := 0; ; {
			next := strings.Index(message[begin:], value)
			if next < 0 {
				break
			}
			begin += next
			for i := range value {
				marked[begin+i] = true
			}
			begin++
		}
	}
	return marked
}

// runsOf iterates over the runs of the message and where they begin, but for those that
// contain a part of one of the others.
func runsOf(message string, others []string) iter.Seq2[run, int] {
	return func(yield func(run, int) bool) {
		marked := occurrences(message, others)
		length := 0 // of what is not marked, up to here
		for i := range len(message) {
			if length++; marked[i] {
				length = 0
			}
			begin := i + 1 - minRun
			if length >= minRun && !yield(run([]byte(message[begin:i+1])), begin) {
				return
			}
		}
	}
}
