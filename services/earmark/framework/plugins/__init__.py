"""The scheduler plugins that run in this process, one a module, and their registry.

Each decides from a pod and one node's NodeInfo alone: no clock, no network, no state between cycles.
"""
