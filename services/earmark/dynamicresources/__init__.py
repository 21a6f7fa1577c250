"""The DRA service: which devices are allocated and held, what a pod's claims would get on a node, nominations.

Pure cores (ledger, inventory, allocator, cycles, nominations) and a thin shell around them (service, component).
What the framework decides (queue, in-process filters, order of victims) is not here.
"""
