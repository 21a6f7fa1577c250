"""Which key of a timeline entry is which step. A new step is its module and one line here."""

from __future__ import annotations

from earmark.simulation.steps.base import Reader
from earmark.simulation.steps.expect import Expect
from earmark.simulation.steps.faults import Delay, Fail
from earmark.simulation.steps.nodes import Attach, Hold, Release
from earmark.simulation.steps.objects import Apply, Delete, Patch
from earmark.simulation.steps.services import Restart, Start, Stop

READERS: dict[str, Reader] = {
    Apply.key: Apply.read,
    Delete.key: Delete.read,
    Patch.key: Patch.read,
    Stop.key: Stop.read,
    Start.key: Start.read,
    Restart.key: Restart.read,
    Fail.key: Fail.read,
    Delay.key: Delay.read,
    Hold.key: Hold.read,
    Release.key: Release.read,
    Attach.key: Attach.read,
    Expect.key: Expect.read,
}
