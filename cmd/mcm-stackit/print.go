// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"
)

// format is the value of -o: how data is printed.
type format struct {
	value   string
	allowed []string
}

// The values of -o; "" is text.
const (
	formatWide = "wide"
	formatJSON = "json"
	formatYAML = "yaml"
	formatName = "name"
)

// addTo adds -o to a command, with these values allowed beside "".
func (f *format) addTo(flags *pflag.FlagSet, command *cobra.Command, allowed ...string) {
	f.allowed = allowed
	flags.VarP(f, "output", "o", "print as one of: "+strings.Join(allowed, ", "))
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
}

// Set implements pflag.Value.
func (f *format) Set(value string) error {
	if !slices.Contains(f.allowed, value) {
		return fmt.Errorf("must be one of: %s", strings.Join(f.allowed, ", "))
	}
	f.value = value
	return nil
}

// String implements pflag.Value.
func (f *format) String() string { return f.value }

// Type implements pflag.Value.
func (f *format) Type() string { return "format" }

// isTable says whether data is printed for people, with what there is to say below it.
func (f *format) isTable() bool { return f.value == "" || f.value == formatWide }

// printAs prints a value as JSON or YAML; done says whether the format is one of these.
func (o *options) printAs(f format, value any) (done bool, err error) {
	var text []byte
	switch f.value {
	case formatJSON:
		text, err = json.MarshalIndent(value, "", "  ")
		text = append(text, '\n')
	case formatYAML:
		text, err = yaml.Marshal(value)
	default:
		return false, nil
	}
	if err == nil {
		_, err = o.streams.Out.Write(text)
	}
	return true, err
}

// object is a Machine or a Server.
type object interface {
	runtime.Object
	metav1.Object
}

// printObjects prints objects as JSON, YAML or names.
func printObjects[T object](o *options, f format, objects []T) error {
	if f.value == formatName {
		for _, each := range objects {
			kind := strings.ToLower(each.GetObjectKind().GroupVersionKind().Kind)
			if _, err := fmt.Fprintf(o.streams.Out, "%s/%s\n", kind, each.GetName()); err != nil {
				return err
			}
		}
		return nil
	}
	list := &corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
	for _, each := range objects {
		list.Items = append(list.Items, runtime.RawExtension{Object: each})
	}
	return o.printObject(f, list)
}

// printObject prints an object as JSON or YAML.
func (o *options) printObject(f format, object runtime.Object) error {
	printer, err := (&genericclioptions.JSONYamlPrintFlags{ShowManagedFields: true}).ToPrinter(f.value)
	if err != nil {
		return err
	}
	return printer.PrintObj(object, o.streams.Out)
}

func isTerminal(stream io.Reader) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
