"""Emulates kubelets and device drivers: pods start, run and terminate, devices report conditions.

Works against any Kubernetes API. Not here: nodes' own health, and anything that decides where pods run.
"""
