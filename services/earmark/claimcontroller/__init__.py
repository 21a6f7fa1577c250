"""Emulates kube-controller-manager's resourceclaim controller and, for generated claims, its garbage collector.

Claims are made from templates, reservations released, allocations cleared; budgets that the disruption controller could
not count allow nothing. Not here: anything that allocates.
"""
