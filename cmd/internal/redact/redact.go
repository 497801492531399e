// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package redact keeps Secrets, keys and tokens out of the log of a process.
package redact

import (
	"regexp"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// maxVerbosity is the highest at which the Kubernetes client prints no bodies of
// answers (client-go, transport/round_trippers.go): those of Secrets hold keys.
const maxVerbosity = 7

// KeepSecrets keeps Secrets, keys and tokens out of the log, whatever --v says. flags are
// klog's, after they were parsed. (klog shows
// its filter all arguments but the error of an ErrorS: what makes such errors keeps
// secrets out of them itself.)
func KeepSecrets(flags *pflag.FlagSet) {
	klog.SetLogFilter(redactor{})
	capVerbosity(flags)
}

// capVerbosity limits --v, and switches off --vmodule, which would raise the verbosity of
// single files beyond the limit.
func capVerbosity(flags *pflag.FlagSet) {
	set := func(name, value, message string) {
		if err := flags.Set(name, value); err != nil {
			klog.FlushAndExit(klog.ExitFlushTimeout, 1)
		}
		klog.InfoS(message+": above it the Kubernetes client prints Secrets", "v", maxVerbosity)
	}
	if level, err := strconv.Atoi(flags.Lookup("v").Value.String()); err == nil && level > maxVerbosity {
		set("v", strconv.Itoa(maxVerbosity), "The log's verbosity is limited")
	}
	if modules := flags.Lookup("vmodule"); modules != nil && modules.Value.String() != "" { // the command has none
		set("vmodule", "", "The flag --vmodule is ignored, it may exceed the limit of the log's verbosity")
	}
}

// secret matches bootstrap tokens, JSON web tokens and private keys. The manager's
// library logs the bootstrap token of each machine at --v=4
// (machinecontroller/userdata.go).
var secret = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b` +
	`|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*` +
	`|(?s:-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z))`)

const redacted = "<redacted>"

// redactor is a filter for all that is logged in this process.
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

// redact replaces texts and errors that hold a secret. The arguments are the
// caller's: they are copied before they are changed.
func redact(args []any) []any {
	var changed []any
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
		if !secret.MatchString(text) {
			continue
		}
		if changed == nil {
			changed = append(changed, args...)
		}
		changed[i] = secret.ReplaceAllString(text, redacted)
	}
	if changed == nil {
		return args
	}
	return changed
}
