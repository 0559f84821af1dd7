#!/usr/bin/env bash
# Pins a Kubernetes release: writes kubernetes-X.Y/go.mod and go.sum beside this script.
#
# Usage: e2e/build/pin.sh v1.37.2
#
# k8s.io/kubernetes requires its staging modules at v0.0.0, so each is replaced by the published module of the same
# patch. The go line is the release's own: it decides the GODEBUG defaults that its programs run with.
set -euo pipefail
cd "$(dirname "$0")"
version=$1
minor=${version%.*}
folder=kubernetes-${minor#v}
staging=v0.${version#v1.}

released=$(mktemp)
trap 'rm -f "$released"' EXIT
go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p' | xargs cat >"$released"

rm -rf "$folder"
mkdir "$folder"
cd "$folder"
go mod init "e2e/$folder"
go mod edit -go="$(sed -n 's/^go //p' "$released")"
for module in $(sed -n 's/^\t\(k8s\.io\/[a-z-]*\) v0\.0\.0$/\1/p' "$released"); do
  go mod edit -replace "$module=$module@$staging"
done
# The controller manager is for the scenarios that ask for some of its controllers, kubectl for the examples of the docs.
go get -tool "k8s.io/kubernetes/cmd/kube-apiserver@$version" "k8s.io/kubernetes/cmd/kube-controller-manager@$version" \
  "k8s.io/kubernetes/cmd/kubectl@$version"
