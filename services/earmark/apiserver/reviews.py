"""The kinds that are only asked: what may I do, who am I. Nothing of them is stored. Pure.

There is one user, who may do everything: whoever has the token.
"""

from __future__ import annotations

from typing import Any

from earmark.apiserver import errors
from earmark.kube import objects
from earmark.kube.resources import Resource

USER = "earmark"
GROUPS_OF_USER = ("system:masters", "system:authenticated")

_AUTHORIZATION, _AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"

REVIEWS: tuple[Resource, ...] = (
    Resource(_AUTHENTICATION, "v1", "selfsubjectreviews", "SelfSubjectReview", False, objects.Object),
    Resource(_AUTHORIZATION, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False, objects.Object),
    Resource(_AUTHORIZATION, "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", False, objects.Object),
)

GROUPS: dict[tuple[str, str], dict[str, Resource]] = {}
for _resource in REVIEWS:
    GROUPS.setdefault((_resource.group, _resource.version), {})[_resource.plural] = _resource

_BY_PATH = {f"{resource.base_path}/{resource.plural}": resource for resource in REVIEWS}


def review_at(path: str) -> Resource | None:
    """Return the kind that is asked at a path; None if it is none of these."""
    return _BY_PATH.get(path)


def answer(resource: Resource, asked: dict[str, Any]) -> dict[str, Any]:
    """Return a review with its status. `asked` is the review in its normal form.

    Raises StatusError 422 for an access review that does not say what is to be done to what.
    """
    spec = asked.get("spec", {})
    if resource.kind == "SelfSubjectAccessReview":
        if ("resourceAttributes" in spec) is ("nonResourceAttributes" in spec):
            detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            cause = errors.invalid("spec.resourceAttributes", spec.get("resourceAttributes"), detail)
            raise errors.invalid_object(resource, "", [cause])
        status: dict[str, Any] = {"allowed": True, "reason": "whoever has the token may do everything"}
    elif resource.kind == "SelfSubjectRulesReview":
        if not spec.get("namespace"):
            raise errors.bad_request("no namespace on request")
        status = {
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": False,
        }
    else:
        status = {"userInfo": {"username": USER, "groups": list(GROUPS_OF_USER)}}
    return {**asked, "status": status}
