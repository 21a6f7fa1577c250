"""What is Kubernetes' own: objects (the fields we use), quantities, selectors, the API seam and adapters, informers.

Nothing here knows of scheduling, preemption or nominations. Everything else may import this package.
"""
