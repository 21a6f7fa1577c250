"""Emulates kube-controller-manager's resourceclaim controller and, for generated claims, its garbage collector.

Claims are made from templates, reservations released, allocations cleared. Not here: anything that allocates.
"""
