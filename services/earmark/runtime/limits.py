"""Limits and keepalive of all gRPC traffic, stated once for servers, channels and the in-process path."""

from __future__ import annotations

# A request or response may have this many bytes. A round of a dry run over 2,000 nodes stays far below.
MAX_MESSAGE_BYTES = 64 * 1024 * 1024

# A silent connection is probed after this long, and counts as dead when no answer comes for as long.
KEEPALIVE_TIME_MS = 20_000
KEEPALIVE_TIMEOUT_MS = 10_000

_SIZES: tuple[tuple[str, int], ...] = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
)

CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    *_SIZES,
    ("grpc.keepalive_time_ms", KEEPALIVE_TIME_MS),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
    # Streams of wake-ups are silent for hours: keep probing.
    ("grpc.http2.max_pings_without_data", 0),
    # A service that was restarted is found again within a second, not after gRPC's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # Channels to one address share nothing: a test's channel never gets another's broken connection.
    ("grpc.use_local_subchannel_pool", 1),
)

SERVER_OPTIONS: tuple[tuple[str, int], ...] = (
    *_SIZES,
    ("grpc.keepalive_time_ms", KEEPALIVE_TIME_MS),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
    # Clients probe every 20 s; the default would close their connections for it ("too many pings").
    ("grpc.http2.min_ping_interval_without_data_ms", KEEPALIVE_TIME_MS // 2),
    ("grpc.http2.max_ping_strikes", 0),
    # Two processes that listen on one address would share its calls.
    ("grpc.so_reuseport", 0),
)
