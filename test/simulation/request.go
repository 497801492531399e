// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"net/http"
	"strings"
)

// operations by the method and the kind of thing that the path names; of all for those that
// the path names one of.
var operations = map[string]string{
	"POST servers": opCreate, "GET servers": opList, "GET servers/": opGet, "DELETE servers/": opDelete,
	"GET nics": opNICs, "GET nics/": opGetNIC, "PATCH nics/": opPatch, "DELETE nics/": opDeleteNIC,
	"GET volumes": opVolumes, "GET volumes/": opGetVolume, "DELETE volumes/": opDeleteVolume,
}

func operationOf(request *http.Request) string {
	segments := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	last := segments[len(segments)-1]
	switch {
	case last == "token":
		return opToken
	case last == "nics" && segments[len(segments)-3] == "servers":
		return opServerNICs
	}
	if operation, ofAll := operations[request.Method+" "+last]; ofAll {
		return operation
	}
	return operations[request.Method+" "+segments[len(segments)-2]+"/"]
}

func lastSegment(request *http.Request) string {
	return request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]
}

func serverIDIn(request *http.Request) string {
	_, rest, _ := strings.Cut(request.URL.Path, "/servers/")
	id, _, _ := strings.Cut(rest, "/")
	return id
}
