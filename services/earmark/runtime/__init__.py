"""What every service starts with: settings, clock, ids, channels, server, health, telemetry, metrics, logs, supervisor.

The only package that touches gRPC servers and OpenTelemetry exporters. It knows the services' names and nothing else.
"""
