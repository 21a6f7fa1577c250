"""What every service starts with: settings, clock, ids, channels, server, health, telemetry, metrics, logs.

The only package that touches gRPC servers and OpenTelemetry exporters. It knows no service by name.
"""
