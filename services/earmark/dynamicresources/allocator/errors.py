"""The one error of the allocator."""

from __future__ import annotations

FATAL = "fatal"
NODE = "node"
TIMEOUT = "timeout"
PANIC = "panic"


class AllocationError(Exception):
    """The question cannot be answered; not to be confused with "does not fit".

    kind: "fatal" stops the scheduling attempt of the pod; "node" concerns only this node (upstream A1.3); "timeout" is
    a search that was cut off and is retried; "panic" is input that an API server refuses and on which upstream crashes.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text

    def again(self) -> AllocationError:
        """Return an equal error, for an answer that is remembered and raised more than once."""
        return AllocationError(self.kind, self.text)
