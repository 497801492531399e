// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Operations that no path names: a token endpoint may have any, and the API has more than
// the driver uses.
const (
	operationToken   = "GetAccessToken"
	operationUnknown = "UnknownOperation"
)

// operations are the requests of the driver by the SDK's functions. The path is the end of
// the request's, after the region; a * is an ID.
var operations = []struct{ method, path, name string }{
	{http.MethodPost, "servers", "CreateServer"},
	{http.MethodGet, "servers", "ListServers"},
	{http.MethodGet, "servers/*", "GetServer"},
	{http.MethodDelete, "servers/*", "DeleteServer"},
	{http.MethodGet, "servers/*/log", "GetServerLog"},
	{http.MethodGet, "servers/*/nics", "ListServerNICs"},
	{http.MethodGet, "networks/*/nics", "ListNics"},
	{http.MethodGet, "networks/*/nics/*", "GetNic"},
	{http.MethodPatch, "networks/*/nics/*", "UpdateNic"},
	{http.MethodDelete, "networks/*/nics/*", "DeleteNic"},
	{http.MethodGet, "volumes", "ListVolumes"},
	{http.MethodGet, "volumes/*", "GetVolume"},
	{http.MethodDelete, "volumes/*", "DeleteVolume"},
	{http.MethodGet, "nics", "ListProjectNICs"},
}

// operationOf names a request of the IaaS API. The name never contains an ID.
func operationOf(request *http.Request) string {
	_, rest, _ := strings.Cut(request.URL.Path, "/regions/")
	_, resource, _ := strings.Cut(rest, "/")
	for _, known := range operations {
		if matches, _ := path.Match(known.path, resource); matches && known.method == request.Method {
			return known.name
		}
	}
	return operationUnknown
}

// serviceToken is the service of requests for access tokens.
const serviceToken = "token"

// serviceOf names the kind of resource a request of the IaaS API is about. It never contains
// an ID.
func serviceOf(request *http.Request) string {
	segments := strings.Split(request.URL.Path, "/")
	for _, segment := range slices.Backward(segments) {
		switch segment {
		case "servers", "nics", "volumes", "networks":
			return segment
		}
	}
	return "other"
}

// statusLabel is a status code as the metrics have it. A server may answer with any of 1,000:
// those that have no name are one of ten, such as 5xx.
func statusLabel(code int) string {
	switch {
	case code == 0:
		return "network_error"
	case http.StatusText(code) != "":
		return strconv.Itoa(code)
	default:
		return strconv.Itoa(code/100) + "xx"
	}
}

// mostHosts is more than a process that works for one cluster needs: an API and a token
// endpoint, and the others of a rotation.
const mostHosts = 16

// hosts is the one of the process, as its metrics are.
var hosts hostNames

// hostNames bounds how many hosts the metrics name: a service-account key may bring its own
// token endpoint, so that whoever writes Secrets could make any number of series. The zero
// value knows none.
type hostNames struct {
	mu    sync.Mutex
	known map[string]bool
}

// label returns the host if it is one of the first mostHosts, else "other".
func (h *hostNames) label(host string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.known[host]:
	case len(h.known) == mostHosts:
		return "other"
	case h.known == nil:
		h.known = map[string]bool{host: true}
	default:
		h.known[host] = true
	}
	return host
}
