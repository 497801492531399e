// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// WithTables returns a Markdown page with its tables of the fields of ProviderSpec and Secret written anew from the
// types' comments. It returns an error if the page lacks the marks around a table, or a field has no comment.
func WithTables(page string) (string, error) {
	for mark, source := range map[string]struct {
		of  any
		tag string
	}{"ProviderSpec": {&apis.ProviderSpec{}, "json"}, "Secret": {&apis.Secret{}, "key"}} {
		schema, err := reflected(source.of, source.tag)
		if err != nil {
			return "", err
		}
		rows, err := rowsOf(schema, reflect.TypeOf(source.of).Elem(), source.tag, "")
		if err != nil {
			return "", err
		}
		begin, end := "<!-- fields of "+mark+": make generated -->\n", "<!-- end -->"
		before, rest, begun := strings.Cut(page, begin)
		_, after, ended := strings.Cut(rest, end)
		if !begun || !ended {
			return "", errors.New("the page must have a mark <!-- end --> after a mark " + begin)
		}
		page = before + begin + "| Field | Meaning |\n|---|---|\n" + rows + end + after
	}
	return page, nil
}

// rowsOf returns the table rows of a struct's fields, in the order of the fields. A field without a
// comment is an error.
func rowsOf(schema node, of reflect.Type, tag, prefix string) (string, error) {
	properties, _ := schema["properties"].(node)
	rows := ""
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get(tag), ",")
		property, is := properties[name].(node)
		if !is {
			continue // it is not the operator's
		}
		comment, _ := property["description"].(string)
		if comment == "" {
			return "", fmt.Errorf("field %s of %s has no comment", field.Name, of)
		}
		kind := field.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if kind.Kind() == reflect.Struct {
			below, err := rowsOf(property, kind, tag, prefix+name+".")
			if err != nil {
				return "", err
			}
			rows += below
			continue
		}
		rows += fmt.Sprintf("| `%s%s` | %s |\n", prefix, name, meaning(field.Name, comment))
	}
	return rows, nil
}

// meaning returns a field's comment without the field's Go name, in one line.
func meaning(name, comment string) string {
	text := strings.ReplaceAll(strings.Join(strings.Fields(comment), " "), "|", `\|`)
	for _, begin := range []string{name + " is ", name + " are ", name + ", ", name + " "} {
		if rest, cut := strings.CutPrefix(text, begin); cut {
			return rest
		}
	}
	return text
}
