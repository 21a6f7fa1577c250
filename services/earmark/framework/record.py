"""The annotation `earmark.dev/nomination`: what is written with a nomination, so that it survives a restart.

JSON, version 1: {"version":1,"deployment","node","generation","victims":[{"namespace","name","uid"}],
"plugins":{NAME:RECORD}}. A deployment is known by the UID of its lease: what another one wrote says nothing here.
"""

from __future__ import annotations

import msgspec

from earmark.framework.nominator import NominatedPod, Victim
from earmark.kube import objects

ANNOTATION = "earmark.dev/nomination"
VERSION = 1

# Generations go on from the highest that is found: one that nobody can have counted up to must not become it.
_HIGHEST_GENERATION = 2**53


class _Victim(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    uid: str


class _Record(msgspec.Struct, frozen=True):
    version: int
    deployment: str
    node: str
    generation: int
    victims: tuple[_Victim, ...] = ()
    plugins: dict[str, msgspec.Raw] = {}


def write(nomination: NominatedPod, deployment: str) -> str:
    """Return the annotation's text, signed with the UID of the deployment's lease."""
    record = _Record(
        VERSION,
        deployment,
        nomination.node,
        nomination.generation,
        tuple(_Victim(victim.namespace, victim.name, victim.uid) for victim in nomination.victims),
        {name: _raw(text) for name, text in nomination.records.items() if text},
    )
    return msgspec.json.encode(record, order="deterministic").decode()


def _raw(text: str) -> msgspec.Raw:
    """A plugin's record as JSON; one that is no JSON is kept as a string."""
    try:
        return msgspec.Raw(msgspec.json.encode(msgspec.json.decode(text)))
    except msgspec.DecodeError:
        return msgspec.Raw(msgspec.json.encode(text))


def read(pod: objects.Pod, deployment: str) -> NominatedPod | None:
    """Return the nomination that the pod's annotation tells of.

    None where there is none or it does not count: the pod is bound, nominatedNodeName is another node, or the text is
    not a record of this version that this deployment wrote.
    """
    text = pod.metadata.annotations.get(ANNOTATION)
    if not text or pod.spec.node_name or not pod.status.nominated_node_name:
        return None
    try:
        record = msgspec.json.decode(text, type=_Record)
    except msgspec.DecodeError:
        return None
    if record.version != VERSION or record.deployment != deployment:
        return None
    if record.node != pod.status.nominated_node_name or not 0 < record.generation <= _HIGHEST_GENERATION:
        return None
    return NominatedPod(
        pod.metadata.uid,
        pod.metadata.namespace,
        pod.metadata.name,
        record.node,
        pod.priority,
        record.generation,
        tuple(Victim(victim.namespace, victim.name, victim.uid) for victim in record.victims),
        {name: bytes(raw).decode() for name, raw in record.plugins.items()},
    )
