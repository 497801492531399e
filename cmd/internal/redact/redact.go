// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package redact keeps the content of Secrets, keys and tokens out of a process's log and errors.
package redact

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// maxVerbosity is the highest level at which the Kubernetes client does not log response bodies (client-go,
// transport/round_trippers.go): those of Secrets contain keys.
const maxVerbosity = 7

// KeepSecrets keeps Secrets, keys and tokens out of the log, whatever --v is. flags are klog's
// flags, after parsing. The error of an ErrorS call is not filtered, because klog does not pass it
// to filters: code that creates such errors must keep secrets out of them.
func KeepSecrets(flags *pflag.FlagSet) {
	klog.SetLogFilter(redactor{})
	capVerbosity(flags)
}

// capVerbosity limits --v, and disables --vmodule, which could raise the verbosity of single files above the limit.
func capVerbosity(flags *pflag.FlagSet) {
	set := func(name, value, message string) {
		if err := flags.Set(name, value); err != nil {
			klog.FlushAndExit(klog.ExitFlushTimeout, 1)
		}
		klog.InfoS(message+": at a higher verbosity the Kubernetes client prints Secrets", "v", maxVerbosity)
	}
	if level, err := strconv.Atoi(flags.Lookup("v").Value.String()); err == nil && level > maxVerbosity {
		set("v", strconv.Itoa(maxVerbosity), "Limiting the log's verbosity")
	}
	if modules := flags.Lookup("vmodule"); modules != nil && modules.Value.String() != "" { // mcm-stackit has no such flag
		set("vmodule", "", "Ignoring the flag --vmodule, which may exceed the limit of the log's verbosity")
	}
}

// secret matches bootstrap tokens, JSON web tokens and private keys. MCM's library logs the bootstrap token of each
// machine at --v=4 (machinecontroller/userdata.go).
var secret = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b` +
	`|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*` +
	`|(?s:-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z))` +
	`|` + pemInBase64 + `[A-Za-z0-9+/=_-]+`)

// pemInBase64 is how a PEM file begins in base64, as in the fields for certificates and keys of a kubeconfig.
const pemInBase64 = `LS0tLS1CRUdJ`

const redacted = "<redacted>"

// Error returns an error with the text of err, without secrets; nil for nil. A kubeconfig may have a key in a field for
// a path, and client-go's errors repeat paths.
func Error(err error) error {
	if err == nil || !secret.MatchString(err.Error()) {
		return err
	}
	return errors.New(secret.ReplaceAllString(err.Error(), redacted))
}

// maxPath is the length in bytes of the longest path that IsContent accepts without a look at the disk. The keys and
// kubeconfigs that STACKIT and Gardener issue are longer.
const maxPath = 255

// content matches what a file has and its path does not: line breaks, JSON, or a JSON web token.
var content = regexp.MustCompile(`[\r\n]|^\s*\{.*"|^eyJ[\w-]{8,}\.[\w-]{8,}\.|^` + pemInBase64)

// IsContent reports whether a value that should be a path or a name is probably the content of a file: "$(cat
// key.json)" in place of key.json. Errors must not repeat it.
func IsContent(value string) bool {
	if len(value) <= maxPath && !content.MatchString(value) {
		return false
	}
	_, err := os.Stat(value)
	return err != nil
}

// flagAndValue matches an argument that begins with a flag.
var flagAndValue = regexp.MustCompile(`(?s)^(--[a-z][a-z-]*|-[A-Za-z])=?(.*)$`)

// CheckArguments returns an error if an argument is the content of a file. Call it before the flags are parsed: the
// errors of flags repeat values, and so do those of client-go about a kubeconfig that it does not find.
func CheckArguments(args []string) error {
	before := ""
	for _, arg := range args {
		flag, value := before, arg
		before = ""
		if parts := flagAndValue.FindStringSubmatch(arg); parts != nil {
			flag, value = parts[1], parts[2]
			if value == "" {
				before = flag
			}
		}
		isContent := func(part string) bool { return !isURL.MatchString(part) && IsContent(part) }
		if flag != "--token" && slices.ContainsFunc(strings.Split(value, ","), isContent) {
			return ContentError(cmp.Or(flag, "an argument"))
		}
	}
	return nil
}

// isURL matches a URL, which may be longer than a path: a signed one has a long query.
var isURL = regexp.MustCompile(`^https?://\S+$`)

// ContentError returns an error for a flag or variable whose value is content (IsContent). It does not repeat the
// value.
func ContentError(name string) error {
	return fmt.Errorf("%s is the content of a file, not a path or a name (it is not shown, as it may be secret)", name)
}

// redactor filters everything that this process logs.
type redactor struct{}

var _ klog.LogFilter = redactor{}

// Filter implements klog.LogFilter for klog.Info and its like.
func (redactor) Filter(args []any) []any {
	return redact(args)
}

// FilterF implements klog.LogFilter for klog.Infof and its like.
func (redactor) FilterF(format string, args []any) (string, []any) {
	return format, redact(args)
}

// FilterS implements klog.LogFilter for klog.InfoS and its like.
func (redactor) FilterS(message string, keysAndValues []any) (string, []any) {
	return message, redact(keysAndValues)
}

// redact returns a copy of the arguments in which texts and errors have no secrets.
func redact(args []any) []any {
	changed := slices.Clone(args)
	for i, arg := range args {
		var text string
		switch value := arg.(type) {
		case string:
			text = value
		case []byte:
			text = string(value)
		case error:
			text = value.Error()
		default:
			continue
		}
		if secret.MatchString(text) {
			changed[i] = secret.ReplaceAllString(text, redacted)
		}
	}
	return changed
}
