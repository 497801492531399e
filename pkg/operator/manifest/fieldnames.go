// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// nearestField returns the path of the known field that an unknown one was meant to be; ""
// if none is like it. It is one beside the unknown field, or one of its very name elsewhere
// in the root type.
func nearestField(root reflect.Type, unknown string) string {
	names := pathNames(unknown)
	if len(names) == 0 {
		return ""
	}
	name := names[len(names)-1]
	siblings := slices.Sorted(maps.Keys(fieldsOf(typeAt(root, names[:len(names)-1]))))
	if near := Nearest(name, siblings); near != "" {
		return near
	}
	return pathOf(root, name, maxDepth)
}

// Nearest returns the candidate with the least edits between it and the name, upper and
// lower case being the same; "" if all need many.
func Nearest(name string, candidates []string) string {
	best, least := "", 2+len(name)/4
	for _, candidate := range candidates {
		if edits := editDistance(strings.ToLower(name), strings.ToLower(candidate)); edits < least {
			best, least = candidate, edits
		}
	}
	return best
}

// editDistance counts the bytes to insert, delete or replace that make b of a (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// maxDepth is how deep pathOf looks.
const maxDepth = 3

// pathOf returns where a type has a field of the name; "" if it has none. The type itself is
// looked at before those of its fields.
func pathOf(in reflect.Type, name string, depth int) string {
	fields := fieldsOf(in)
	if _, ok := fields[name]; ok {
		return name
	}
	if depth == 0 {
		return ""
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if found := pathOf(fields[field], name, depth-1); found != "" {
			return field + "." + found
		}
	}
	return ""
}

// typeAt returns the type of the field that the names lead to; nil if there is none.
func typeAt(root reflect.Type, names []string) reflect.Type {
	at := root
	for _, name := range names {
		for at != nil && at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		if at == nil {
			return nil
		}
		switch at.Kind() {
		case reflect.Slice, reflect.Map:
			at = at.Elem()
		default:
			at = fieldsOf(at)[name]
		}
	}
	return at
}

// fieldsOf returns the fields of a struct, or of what a pointer leads to, by their names in
// JSON. Fields of embedded structs without a name of their own are among them.
func fieldsOf(in reflect.Type) map[string]reflect.Type {
	for in != nil && in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	fields := map[string]reflect.Type{}
	if in == nil || in.Kind() != reflect.Struct {
		return fields
	}
	for i := range in.NumField() {
		field := in.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name != "":
			fields[name] = field.Type
		case field.Anonymous:
			maps.Copy(fields, fieldsOf(field.Type))
		}
	}
	return fields
}
