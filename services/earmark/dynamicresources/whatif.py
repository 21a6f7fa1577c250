"""Pods that a sandbox brings itself: their claims from templates are made in the sandbox, as the controller would.

Pure; templates are passed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from earmark.dynamicresources.facts import PodFacts, PodRef, pod_facts
from earmark.dynamicresources.state import World, claim_seen, pod_seen
from earmark.kube import objects


class MissingTemplate(Exception):
    """The pod names a ResourceClaimTemplate that is not there."""


def wanted_templates(pod: objects.Pod) -> tuple[str, ...]:
    """Return the names of the templates for which the pod has no claim yet."""
    made = {status.name for status in pod.status.resource_claim_statuses}
    names = (entry.resource_claim_template_name for entry in pod.spec.resource_claims if entry.name not in made)
    return tuple(dict.fromkeys(name for name in names if name is not None))


def with_pod(
    world: World,
    pod: objects.Pod,
    ref: PodRef,
    priority: int,
    templates: Mapping[str, objects.ResourceClaimTemplate],
) -> tuple[World, PodFacts]:
    """Return the state in which the pod and its claims exist. Raises MissingTemplate.

    ref: what the caller calls the pod; a manifest has no UID. priority: for a manifest that names only a class.
    """
    namespace, uid = ref.namespace or "default", ref.uid
    facts = replace(pod_facts(pod), ref=replace(ref, namespace=namespace))
    if pod.spec.priority is None:
        facts = replace(facts, priority=priority)
    statuses = list(facts.generated)
    made = {status.name for status in statuses}
    for entry in facts.entries:
        template_name = entry.resource_claim_template_name
        if template_name is None or entry.name in made:
            continue
        template = templates.get(template_name)
        if template is None:
            raise MissingTemplate(f"ResourceClaimTemplate {namespace}/{template_name} does not exist")
        name = f"{ref.name}-{entry.name}"
        owner = objects.OwnerReference(api_version="v1", kind="Pod", name=ref.name, uid=uid, controller=True)
        claim = objects.ResourceClaim(
            metadata=objects.ObjectMeta(
                name=name, namespace=namespace, uid=f"{uid}-{entry.name}", owner_references=(owner,)
            ),
            spec=template.spec.spec,
        )
        world, _ = claim_seen(world, claim)
        statuses.append(objects.PodResourceClaimStatus(name=entry.name, resource_claim_name=name))
    facts = replace(facts, generated=tuple(statuses))
    world, _ = pod_seen(world, facts)
    return world, facts
