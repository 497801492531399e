// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// format is the value of -o: how data is printed.
type format struct {
	value   string
	allowed []string
	// template is that of jsonpath; "" if the value is another.
	template string
}

// The values of -o; "" is text.
const (
	formatWide = "wide"
	formatJSON = "json"
	formatYAML = "yaml"
	formatName = "name"
	// formatJSONPath comes before a template, as kubectl has it.
	formatJSONPath = "jsonpath="
)

// addTo adds -o to a command, with these values allowed beside "" and jsonpath.
func (f *format) addTo(command *cobra.Command, allowed ...string) {
	f.allowed = allowed
	command.Flags().VarP(f, "output", "o", "print as one of: "+f.choices())
	_ = command.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions(slices.Concat(allowed, []string{formatJSONPath}), cobra.ShellCompDirectiveNoFileComp))
}

func (f *format) choices() string {
	return strings.Join(f.allowed, ", ") + ", " + formatJSONPath + "TEMPLATE"
}

// Set implements pflag.Value.
func (f *format) Set(value string) error {
	template, isTemplate := strings.CutPrefix(value, formatJSONPath)
	if isTemplate && template != "" {
		f.value, f.template = value, template
		// Data that has nothing, and enough of it, has an answer to all that is no mistake.
		_, err := evaluate(template, make([]any, 1000))
		return err
	}
	if isTemplate || !slices.Contains(f.allowed, value) {
		return fmt.Errorf("must be one of: %s", f.choices())
	}
	f.value, f.template = value, ""
	return nil
}

// evaluate returns what a template of jsonpath makes of data. A template is used once: a range
// in it changes it.
func evaluate(template string, data any) ([]byte, error) {
	parsed := jsonpath.New("output").AllowMissingKeys(true)
	if err := parsed.Parse(template); err != nil {
		return nil, fmt.Errorf("the jsonpath template is wrong: %w", err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, data); err != nil {
		return nil, fmt.Errorf("the jsonpath template does not fit: %w", err)
	}
	return out.Bytes(), nil
}

// String implements pflag.Value.
func (f *format) String() string { return f.value }

// Type implements pflag.Value.
func (f *format) Type() string { return "format" }

// printAs prints a value as JSON, YAML or by a template; done says whether the format is one
// of these.
func (o *options) printAs(f format, value any) (done bool, err error) {
	var text []byte
	switch {
	case f.template != "":
		text, err = f.fill(value)
	case f.value == formatJSON:
		text, err = json.MarshalIndent(value, "", "  ")
		text = append(text, '\n')
	case f.value == formatYAML:
		text, err = yaml.Marshal(value)
	default:
		return false, nil
	}
	if err == nil {
		_, err = o.streams.Out.Write(text)
	}
	return true, err
}

// fill returns the template filled with a value, whose fields have the names of its JSON.
func (f *format) fill(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	// Numbers become integers: a template compares them with integers.
	var data any
	if err := utiljson.Unmarshal(text, &data); err != nil {
		return nil, err
	}
	return evaluate(f.template, data)
}

// colours of the verdicts, as in the terminals' standard (ECMA-48).
var colours = map[report.Verdict]string{report.Fine: "\x1b[32m", report.Wrong: "\x1b[31m", report.Unknown: "\x1b[33m", report.Hint: "\x1b[36m"}

const colourOff = "\x1b[0m"

// verdict is the word for a verdict, coloured on a terminal unless NO_COLOR is set or
// TERM=dumb.
func (o *options) verdict(v report.Verdict) string {
	word := strings.ToUpper(string(v))
	noColour, _ := o.lookup("NO_COLOR")
	if terminal, _ := o.lookup("TERM"); noColour != "" || terminal == "dumb" || !isTerminal(o.streams.Out) {
		return word
	}
	return colours[v] + word + colourOff
}

func isTerminal(stream any) bool {
	if out, ok := stream.(*output); ok {
		stream = out.Writer
	}
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// progress is a line on a terminal that says what is being done. Elsewhere it says nothing.
type progress struct{ terminal io.Writer }

func (o *options) progress() *progress {
	if !isTerminal(o.streams.ErrOut) {
		return &progress{io.Discard}
	}
	return &progress{o.streams.ErrOut}
}

// show replaces the line; "" clears it.
func (p *progress) show(text string) {
	_, _ = fmt.Fprintf(p.terminal, "\r\x1b[K%s", text)
}
