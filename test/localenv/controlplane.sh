#!/bin/sh
# SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
# SPDX-License-Identifier: Apache-2.0

# Makes etcd and kube-apiserver in a folder, for make:
#
#	controlplane.sh <folder> <version>|source [<index>]
#
# setup-envtest downloads the version, by that index or its own. It is stopped where nothing arrives
# for 5 s, since macOS has no timeout(1) and setup-envtest none. Where it fails, and for "source",
# both are built from the module hack/tools/controlplane.
set -eu
folder=$1 version=$2 index=${3:-}
source=$(dirname "$0")/../../hack/tools/controlplane

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
# Two that run at the same time do not share a folder before they are done.
next=$(mktemp -d "$folder/next.XXXXXX")
pid=
end() {
	test -z "$pid" || kill "$pid" 2>/dev/null || :
	chmod -R u+w "$next" # setup-envtest makes its folders read-only
	rm -rf "$next"
}
trap end EXIT
trap 'exit 1' HUP INT TERM

# envtest downloads into $next, and ends when nothing has arrived there for 5 s.
envtest() {
	TMPDIR=$next "$SETUP_ENVTEST" --bin-dir "$next" ${index:+--index "$index"} use "$version" >"$next/log" 2>&1 &
	pid=$! quiet=0 size=
	while kill -0 "$pid" 2>/dev/null; do
		sleep 1
		before=$size size=$(du -sk "$next")
		quiet=$((quiet + 1))
		test "$size" = "${before:-$size}" || quiet=0
		if [ "$quiet" -ge 5 ] && kill "$pid" 2>/dev/null; then
			echo "nothing arrived for 5 s" >"$next/log"
		fi
	done
	status=0
	wait "$pid" 2>/dev/null || status=$?
	pid=
	return "$status"
}

download() {
	echo "Downloading etcd and kube-apiserver $version${index:+, by the index $index}, once"
	envtest && chmod -R u+w "$next" &&
		mv -f "$next"/k8s/*/etcd "$next"/k8s/*/kube-apiserver "$next" 2>"$next/log" && return
	echo "Not downloaded: $(tr '\n' ' ' <"$next/log")"
	return 1
}

build() {
	version=$("$GO" -C "$source" list -m -f '{{.Version}}' k8s.io/kubernetes)
	echo "Building etcd and kube-apiserver $version from source, once: up to 10 minutes on 2 cores"
	GOGC=800 "$GO" -C "$source" build -ldflags "-s -w" -o "$next/etcd" go.etcd.io/etcd/server/v3
	# machine-controller refuses a cluster whose version is not semver.
	GOGC=800 "$GO" -C "$source" build -o "$next/kube-apiserver" \
		-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" k8s.io/kubernetes/cmd/kube-apiserver
}

if [ "$version" = source ] || ! download; then
	build
fi
mv -f "$next/etcd" "$next/kube-apiserver" "$folder"
