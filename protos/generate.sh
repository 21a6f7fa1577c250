#!/bin/sh
# Makes services/earmark/v1 from the protos. The result is committed; `make check` fails when it differs.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON_BIN:-.venv/bin/python}
out=${1:-services}
mkdir -p "$out/earmark/v1"
PATH="$(dirname "$python"):$PATH" "$python" -m grpc_tools.protoc -I protos \
    --python_out="$out" --mypy_out="quiet:$out" --grpc_python_out="$out" --mypy_grpc_out="quiet:$out" \
    protos/earmark/v1/*.proto
printf '"""Generated from protos/earmark/v1 by protos/generate.sh. Never edited."""\n' > "$out/earmark/v1/__init__.py"
: > "$out/earmark/v1/py.typed"
