"""Which settling window awaits a pod or a claim, read from the record on the preemptor (design: Telemetry).

The emulated controllers know nothing of nominations. So that their work stands in the window's trace they look here,
and only for that: nothing is decided by it. Real ones do not look, and the trace is complete without.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from earmark.kube.informer import InformerEvent
from earmark.kube.objects import Pod
from earmark.runtime.settling_trace import MOST_CLAIMS, MOST_VICTIMS, claim_span, settling_trace, victim_span

_ANNOTATION = "earmark.dev/nomination"


class _Uid(msgspec.Struct, frozen=True):
    uid: str


class _PluginRecord(msgspec.Struct, frozen=True, rename="camel"):
    victim_claims: tuple[_Uid, ...] = ()


class _Record(msgspec.Struct, frozen=True):
    generation: int
    victims: tuple[_Uid, ...] = ()
    plugins: dict[str, msgspec.Raw] = {}


class Preemptors:
    """The pods whose nomination stands in the API: few, of all that an informer has."""

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}

    def on_pod(self, event: InformerEvent[Pod]) -> None:
        """Take in what an informer of pods has seen (a handler for it)."""
        pod = event.new
        if event.old is not None:
            self._pods.pop(event.old.metadata.uid, None)
        if pod is None or pod.spec.node_name or not pod.status.nominated_node_name:
            return
        if _ANNOTATION in pod.metadata.annotations:
            self._pods[pod.metadata.uid] = pod

    def pods(self) -> tuple[Pod, ...]:
        """Return them."""
        return tuple(self._pods.values())


def awaiting_victim(pods: Iterable[Pod], victim_uid: str) -> tuple[int, int] | None:
    """Return trace id and parent span for the end of a victim; None where no window of these pods awaits it."""
    for preemptor, record in _records(pods, victim_uid):
        if victim_uid in [victim.uid for victim in record.victims[:MOST_VICTIMS]]:
            trace, _ = settling_trace(preemptor, record.generation)
            return trace, victim_span(preemptor, record.generation, victim_uid)
    return None


def awaiting_claim(pods: Iterable[Pod], claim_uid: str) -> tuple[int, int] | None:
    """Return trace id and parent span for the deallocation of a claim; None where no window of these pods awaits it."""
    for preemptor, record in _records(pods, claim_uid):
        for raw in record.plugins.values():
            try:
                known = msgspec.json.decode(raw, type=_PluginRecord)
            except msgspec.MsgspecError:
                # Another plugin's record, in its own words.
                continue
            if claim_uid in [claim.uid for claim in known.victim_claims[:MOST_CLAIMS]]:
                trace, _ = settling_trace(preemptor, record.generation)
                return trace, claim_span(preemptor, record.generation, claim_uid)
    return None


def _records(pods: Iterable[Pod], uid: str) -> Iterable[tuple[str, _Record]]:
    for pod in pods:
        text = pod.metadata.annotations.get(_ANNOTATION, "")
        # The text is looked through first: most preemptors wait for something else.
        if uid not in text:
            continue
        try:
            yield pod.metadata.uid, msgspec.json.decode(text, type=_Record)
        except msgspec.MsgspecError:
            continue
