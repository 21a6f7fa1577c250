"""What scheduler and plugin tell each other before they work together: who they are, gates, settings, nominations."""

from __future__ import annotations

from earmark.dynamicresources import convert, record
from earmark.dynamicresources.nominating import Known
from earmark.dynamicresources.settings import DRA_PREEMPTION, Settings
from earmark.dynamicresources.statuses import PLUGIN_NAME
from earmark.v1 import scheduler_plugin_pb2

PROTOCOL_VERSION = "v1"
# Cluster events that the framework handles for this plugin (upstream B4.1); all others come as wake-ups.
REQUEUE_EVENTS = ("Node/Add", "Node/UpdateNodeLabel", "Node/UpdateNodeAllocatable")


def configuration(settings: Settings) -> dict[str, str]:
    """Return the settings that scheduler and plugin must agree on."""
    return {"nominationPersistence": settings.nomination_persistence}


def description(settings: Settings, instance_id: str) -> scheduler_plugin_pb2.DescribeResponse:
    """Return what Describe answers; `instance_id` names the process."""
    points = [
        scheduler_plugin_pb2.EXTENSION_POINT_PRE_ENQUEUE,
        scheduler_plugin_pb2.EXTENSION_POINT_PRE_FILTER,
        scheduler_plugin_pb2.EXTENSION_POINT_FILTER,
        scheduler_plugin_pb2.EXTENSION_POINT_POST_FILTER,
        scheduler_plugin_pb2.EXTENSION_POINT_SCORE,
        scheduler_plugin_pb2.EXTENSION_POINT_RESERVE,
        scheduler_plugin_pb2.EXTENSION_POINT_PRE_BIND,
    ]
    if settings.preemption:
        # E2: without the gate the plugin is what it was.
        points.insert(2, scheduler_plugin_pb2.EXTENSION_POINT_PRE_FILTER_EXTENSIONS)
        points.append(scheduler_plugin_pb2.EXTENSION_POINT_NOMINATION)
    return scheduler_plugin_pb2.DescribeResponse(
        name=PLUGIN_NAME,
        protocol_version=PROTOCOL_VERSION,
        extension_points=points,
        requeue_events=REQUEUE_EVENTS,
        feature_gates=settings.effective_gates(),
        instance_id=instance_id,
        score_weight=settings.score_weight,
        configuration=configuration(settings),
    )


def mismatch(request: scheduler_plugin_pb2.OpenSessionRequest, settings: Settings) -> str:
    """Return in what the caller of OpenSession and this plugin differ, with both values; "" if they agree.

    Sandboxes need only speak the same contract.
    """
    if request.protocol_version and request.protocol_version != PROTOCOL_VERSION:
        return f"protocol_version: {request.protocol_version!r} of the caller, {PROTOCOL_VERSION!r} of {PLUGIN_NAME}"
    if request.kind == scheduler_plugin_pb2.SESSION_KIND_SANDBOX:
        return ""
    gates = dict(request.feature_gates)
    gates.setdefault(DRA_PREEMPTION, False)
    mine = settings.effective_gates()
    for name in sorted(gates):
        if name in mine and gates[name] != mine[name]:
            return f"feature_gates[{name}]: {gates[name]} of the caller, {mine[name]} of {PLUGIN_NAME}"
    mine_configured = configuration(settings)
    for name in sorted(request.configuration):
        if name in mine_configured and request.configuration[name] != mine_configured[name]:
            return (
                f"configuration[{name}]: {request.configuration[name]!r} of the caller, "
                f"{mine_configured[name]!r} of {PLUGIN_NAME}"
            )
    return ""


def known_nominations(request: scheduler_plugin_pb2.OpenSessionRequest, settings: Settings) -> list[Known]:
    """Read the framework's nominator, with this plugin's records as far as they count. Raises InvalidField."""
    known = []
    for position, item in enumerate(request.nominations):
        field = f"nominations[{position}]"
        pod = convert.pod_ref(item.pod, f"{field}.pod")
        convert.name(item.node_name, f"{field}.node_name")
        convert.at_least(item.generation, 1, f"{field}.generation")
        victims = tuple(
            convert.pod_ref(victim, f"{field}.victims[{index}]") for index, victim in enumerate(item.victims)
        )
        text = item.records.get(PLUGIN_NAME, "")
        restored = None
        if text and settings.nomination_persistence == "api":
            restored = record.read(text, pod, item.node_name, item.generation, item.priority, victims)
        known.append(Known(pod, item.node_name, item.generation, restored))
    return known
