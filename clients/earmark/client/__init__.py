"""A typed asynchronous client of earmark's RPCs, for the command line, the page and scripts.

Not here: the Kubernetes API (earmark.kube) and any decision.
"""

from earmark.client.services import EarmarkClient, ServiceUnavailable

__all__ = ["EarmarkClient", "ServiceUnavailable"]
