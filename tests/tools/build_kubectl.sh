#!/usr/bin/env bash
# Builds kubectl from its Go modules, one program a version: build_kubectl.sh [VERSION ...]
# The programs lie in ${XDG_CACHE_HOME:-~/.cache}/earmark/bin as kubectl-VERSION; what is there is not built again.
set -eu

# The release whose rules the API follows, and one whose kubectl does not know the types of resource.k8s.io/v1.
[ $# -gt 0 ] || set -- 1.37.2 1.33.5

bin=${XDG_CACHE_HOME:-$HOME/.cache}/earmark/bin
mkdir -p "$bin"
if ! command -v go >/dev/null; then
    echo "kubectl is built from Go modules, and there is no go command" >&2
    exit 1
fi

build() {
    local version=$1 folder=$2 module=v0.${1#1.} minor
    minor=${version#1.}
    minor=${minor%%.*}
    cd "$folder"
    cat >main.go <<'EOF'
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() { os.Exit(cli.Run(cmd.NewDefaultKubectlCommand())) }
EOF
    go mod init kubectl 2>/dev/null
    go get "k8s.io/kubectl@$module" "k8s.io/component-base@$module" 2>/dev/null
    # What kubectl says of itself is set when it is linked; without it `kubectl version` fails.
    local at=k8s.io/component-base/version
    go build -mod=mod -o kubectl -ldflags "-s -w -X $at.gitVersion=v$version -X $at.gitMajor=1 -X $at.gitMinor=$minor" .
    mv kubectl "$bin/kubectl-$version"
}

for version in "$@"; do
    if [ -x "$bin/kubectl-$version" ]; then
        echo "$bin/kubectl-$version is there"
        continue
    fi
    echo "building kubectl $version ..."
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    # In a subshell of its own, not as part of a condition: there `set -e` would not hold.
    (build "$version" "$folder")
    rm -rf "$folder"
    echo "$bin/kubectl-$version"
done
