#!/usr/bin/env bash
# Starts Jaeger on loopback until Ctrl-C: $EARMARK_JAEGER, the PATH's, the one that build_jaeger.sh has built, or the
# image, where a container engine runs. OTLP over gRPC on 4317, query API on 16686.
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}/earmark/bin/jaeger
program=${EARMARK_JAEGER:-$(command -v jaeger || true)}
if [ -z "$program" ] && [ -x "$cache" ]; then
    program=$cache
fi

say_how() {
    echo "Services send spans with OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317 (make run, make demo)."
    echo "earmark trace POD --jaeger http://127.0.0.1:16686 prints a trace."
}

if [ -n "$program" ]; then
    # Without the two settings the query API would listen on all interfaces. A built Jaeger has no pages.
    say_how
    export JAEGER_LISTEN_HOST=127.0.0.1
    exec "$program" --set extensions.jaeger_query.http.endpoint=127.0.0.1:16686 \
        --set extensions.jaeger_query.grpc.endpoint=127.0.0.1:16685
fi
for engine in podman docker; do
    if command -v "$engine" >/dev/null && "$engine" info >/dev/null 2>&1; then
        say_how
        exec "$engine" run --rm --name earmark-jaeger -p 127.0.0.1:4317:4317 -p 127.0.0.1:16686:16686 \
            docker.io/jaegertracing/jaeger:2.11.0
    fi
done
echo "no Jaeger: neither EARMARK_JAEGER, nor jaeger in the PATH, nor $cache (tests/tools/build_jaeger.sh builds it)," \
    "nor a container engine that runs" >&2
exit 1
