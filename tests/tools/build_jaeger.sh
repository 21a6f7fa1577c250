#!/usr/bin/env bash
# Builds Jaeger from its Go module: build_jaeger.sh [VERSION]. It takes 13 minutes of CPU time.
# The program is ${XDG_CACHE_HOME:-~/.cache}/earmark/bin/jaeger; what is there is not built again.
# It has the whole query API but no pages: those are not part of the module. The container image has both.
set -eu

version=${1:-1.76.0}
bin=${XDG_CACHE_HOME:-$HOME/.cache}/earmark/bin
if [ -x "$bin/jaeger" ]; then
    echo "$bin/jaeger is there"
    exit 0
fi
if ! command -v go >/dev/null; then
    echo "Jaeger is built from Go modules, and there is no go command" >&2
    exit 1
fi
mkdir -p "$bin"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo "building jaeger $version (minutes) ..."
go mod init jaeger 2>/dev/null
go get "github.com/jaegertracing/jaeger@v$version"
go build -mod=mod -o jaeger -ldflags "-s -w" github.com/jaegertracing/jaeger/cmd/jaeger
mv jaeger "$bin/jaeger"
echo "$bin/jaeger"
