"""The cluster at the end of a run, as reports show it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from earmark.simulation.cluster import Cluster, display, short_device_name
from earmark.simulation.report import PodRecord
from earmark.simulation.verdict import pod_values


def pod_records(cluster: Cluster) -> Mapping[str, PodRecord]:
    """Return every pod that exists, by the name that reports use."""
    records: dict[str, PodRecord] = {}
    for key, pod in sorted(cluster.pods.items()):
        values = pod_values(pod)
        records[display(*key)] = PodRecord(
            node=values["node"],
            nominated_node=values["nominatedNode"],
            phase=values["phase"],
            reason=values["reason"],
            message=values["message"],
            devices=tuple(short_device_name(name) for name in cluster.devices_of(pod)),
        )
    return records
