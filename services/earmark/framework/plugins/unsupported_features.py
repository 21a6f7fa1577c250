"""UnsupportedFeatures: a pod that needs what earmark does not implement stays pending, with a reason that names it.

Placing it without looking at what it asks for would be worse than not placing it. Preferences are no demands and are
left out of scoring.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from earmark.framework.events import Hint
from earmark.framework.node_info import NodeInfo, PodInfo
from earmark.framework.plugins.interface import PreFilterResult
from earmark.framework.status import Code, Status, unresolvable
from earmark.kube import objects

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
# Volumes that make no demands on the node.
_PLAIN_VOLUMES = frozenset({"name", "emptyDir", "configMap", "secret", "projected", "hostPath", "downwardAPI", "image"})


def unsupported(pod: objects.Pod) -> tuple[str, ...]:
    """Return the features that the pod demands and that are not implemented, as field names."""
    found: list[str] = []
    affinity = pod.spec.affinity
    if affinity is not None:
        for name, value in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
            if isinstance(value, Mapping) and value.get(_REQUIRED):
                found.append(f"spec.affinity.{name}.{_REQUIRED}")
    for constraint in pod.spec.topology_spread_constraints:
        # DoNotSchedule is the default.
        hard = isinstance(constraint, Mapping) and constraint.get("whenUnsatisfiable", "DoNotSchedule")
        if hard == "DoNotSchedule":
            found.append("spec.topologySpreadConstraints with DoNotSchedule")
            break
    for volume in pod.spec.volumes:
        if isinstance(volume, Mapping):
            kinds = sorted(key for key in volume if key not in _PLAIN_VOLUMES)
            found += [f"spec.volumes[{volume.get('name', '')}].{kind}" for kind in kinds]
    return tuple(found)


class UnsupportedFeatures:
    """See the module."""

    name = "UnsupportedFeatures"
    sees_identity = False
    hints: Mapping[str, Hint] = MappingProxyType({})

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        """Refuse the pod on all nodes."""
        features = unsupported(pod.pod)
        if features:
            return PreFilterResult(unresolvable(f"pod uses features that are not supported: {', '.join(features)}"))
        return PreFilterResult(Status(Code.SKIP))

    def filter(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Never called: pre_filter has decided."""
        return None
