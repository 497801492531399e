// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// userDataHeaders are the headers of the formats that cloud-init and Ignition read (cloud-init's documentation, "User
// data formats"). Another agent in an image may read more formats, so a missing header is only a hint.
var userDataHeaders = []string{
	"#!", cloudConfig, "#include", "#cloud-boothook", "#part-handler", "## template:", "Content-Type:", "MIME-Version:",
	"From ", "{",
}

const cloudConfig = "#cloud-config"

// The manager replaces two placeholders in a Secret's user data, in these spellings only (v0.62.1 userdata.go:29, 37).
var (
	replacedPlaceholders = []string{"<<BOOTSTRAP_TOKEN>>", "<<MACHINE_NAME>>"}
	// urlEncodedPlaceholders are in files of Ignition.
	urlEncodedPlaceholders = []string{"%3C%3CBOOTSTRAP_TOKEN%3E%3E", "%3C%3CMACHINE_NAME%3E%3E"}
)

// placeholders match these, similar ones, and the manager's names in other spellings: in any case, with blanks, or with
// brackets that an encoder escaped.
var placeholders = regexp.MustCompile(`<<[A-Za-z][A-Za-z0-9_-]*>>` +
	`|(?i:(?:<|&lt;|\\u003c|%3c){2} *` + replacedNames + ` *(?:>|&gt;|\\u003e|%3e){2})`)

const replacedNames = `(?:bootstrap[ _-]?token|machine[ _-]?name)`

// userDataHint returns why user data probably has no effect on a server, and what to do; "" if it looks right. isSecret
// means that it is from a Secret, where the manager replaces placeholders. The hint quotes only placeholders: user data
// may contain passwords.
func userDataHint(text string, isSecret bool) string {
	switch {
	case strings.TrimSpace(text) == "":
		return ""
	case strings.HasPrefix(text, "\x1f\x8b"):
		return "is compressed with gzip: the manager cannot replace placeholders in it"
	case !hasHeader(text):
		return headerHint(text)
	}
	return cmp.Or(lineHint(text), contentHint(text), placeholderHint(text, isSecret), lengthHint(text))
}

// maxOpenStackUserData is the maximum length of user data in OpenStack, in bytes of base64. Which limit the API has was
// not measured.
const maxOpenStackUserData = 65535

// lengthHint returns a hint about user data that is longer than OpenStack accepts, unless the driver refuses it.
func lengthHint(text string) string {
	encoded := base64.StdEncoding.EncodedLen(len(text))
	if encoded <= maxOpenStackUserData || len(text) > apis.MaxUserData {
		return ""
	}
	return fmt.Sprintf("has %d bytes, %d in base64: OpenStack, on which the API is built, accepts at most %d of base64 "+
		"(%d of text), so the API may refuse it; let the server download a part",
		len(text), encoded, maxOpenStackUserData, base64.StdEncoding.DecodedLen(maxOpenStackUserData))
}

func hasHeader(text string) bool {
	return slices.ContainsFunc(userDataHeaders, func(header string) bool {
		return len(text) >= len(header) && strings.EqualFold(text[:len(header)], header)
	})
}

// headerHint returns the hint for user data without a known header.
func headerHint(text string) string {
	decoded, notBase64 := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	switch {
	case strings.HasPrefix(text, "\ufeff"):
		return "begins with a byte order mark (BOM), which hides its first line: save it as UTF-8 without one"
	case notBase64 == nil && (hasHeader(string(decoded)) || bytes.HasPrefix(decoded, []byte("\x1f\x8b"))):
		return "is encoded in base64, and the driver encodes it once more: use the text itself"
	case hasHeader(strings.TrimSpace(text)):
		return "has whitespace before its first line: remove it"
	case !utf8.ValidString(text):
		return notText
	default:
		return "does not begin as cloud-init or Ignition expects, such as with " + cloudConfig + " or #!: they ignore it"
	}
}

// lineHint returns a hint about the lines of user data; "" if they look right.
func lineHint(text string) string {
	line, rest, _ := strings.Cut(text, "\n")
	behind := strings.TrimSpace(strings.TrimPrefix(line, cloudConfig))
	isOneLine := strings.TrimSpace(rest) == ""
	switch {
	case isOneLine && strings.Contains(line, `\n`) && !strings.HasPrefix(line, "{"):
		return `has \n as text instead of line breaks: use | in YAML, or double quotes`
	case isOneLine && needsLines(line):
		return "has no second line, and its first one alone does nothing: keep its line breaks (| in YAML, not >)"
	case strings.HasPrefix(line, "#!") && strings.HasSuffix(line, "\r"):
		return "has Windows line endings: the interpreter in its first line is not found; save it with Unix line endings"
	case strings.HasPrefix(line, cloudConfig+" ") && behind != "" && behind[0] != '#':
		return "has its text behind " + cloudConfig + ", where it is all a comment: keep its line breaks (| in YAML, not >)"
	}
	return ""
}

// contentHint returns a hint about user data that its reader cannot decode; "" if it can.
func contentHint(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	behind, isConfig := strings.CutPrefix(line, cloudConfig)
	behind = strings.TrimSpace(behind)
	switch {
	case strings.HasPrefix(text, "{") && !json.Valid([]byte(text)):
		return "is not JSON: Ignition cannot read it" + templateHint(text)
	case isConfig && (behind == "" || behind[0] == '#'):
		return configHint(text)
	}
	return ""
}

// configHint returns why cloud-init cannot read a #cloud-config, which must be one YAML document with a map; "" if it
// can, or if there are only comments.
func configHint(text string) string {
	decoder, document := yaml.NewDecoder(strings.NewReader(text)), &yaml.Node{}
	err := decoder.Decode(document)
	if errors.Is(err, io.EOF) {
		return ""
	}
	if err == nil {
		err = document.Decode(new(any)) // a template is YAML, but its keys are maps
	}
	var duplicateKey *yaml.TypeError // Python takes the last
	if err != nil && !errors.As(err, &duplicateKey) {
		hint := "is not YAML: cloud-init cannot read it"
		if wrong, _ := notYAML(err); wrong > 1 { // not every error has a line, and the first one is a comment
			hint += fmt.Sprintf("; see its line %d", wrong)
		}
		return hint + templateHint(text)
	}
	if tag := document.Content[0].ShortTag(); tag != "!!map" && tag != "!!null" {
		return "is not a map in YAML: cloud-init ignores it"
	}
	if !errors.Is(decoder.Decode(document), io.EOF) {
		return "has a second YAML document below a line ---: cloud-init reads none of them"
	}
	return ""
}

// templateHint returns what to add to the hint for a text that may be a template.
func templateHint(text string) string {
	if !strings.Contains(text, "{{") {
		return ""
	}
	return "; a template must be rendered first"
}

// needsLines reports whether the first line is a header whose content is in the lines below it. #include may have an
// address in its own line, and a #cloud-config without settings is valid.
func needsLines(line string) bool {
	return strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "#include") && !strings.HasPrefix(line, cloudConfig)
}

func placeholderHint(text string, isSecret bool) string {
	for _, found := range placeholders.FindAllString(text, -1) {
		isReplaced := slices.Contains(replacedPlaceholders, found) || slices.Contains(urlEncodedPlaceholders, found)
		switch {
		case isReplaced && !isSecret:
			return "has " + found + ", which the manager replaces only in a Secret's userData: move it there"
		case !isReplaced && isSecret && !isHeredoc(text, found):
			return "has " + found + ", which nothing replaces: must be " + strings.Join(replacedPlaceholders, " or ")
		}
	}
	return ""
}

// isHeredoc reports whether what looks like a placeholder begins a heredoc of a shell, as in cat <<EOF>>file: a later
// line has only its word.
func isHeredoc(text, found string) bool {
	_, after, _ := strings.Cut(text, found)
	word := strings.Trim(found, "<> ")
	for line := range strings.Lines(after) {
		if strings.TrimSpace(line) == word {
			return true
		}
	}
	return false
}
