"""The embedded Kubernetes API: a registry without I/O, its stores, and the ways to reach it (HTTPS, in process).

It knows Kubernetes' rules for the kinds it serves and nothing of scheduling, preemption or nominations.
"""
