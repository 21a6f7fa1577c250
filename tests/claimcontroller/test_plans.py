"""The claim controller's pure rules: names, plans for pods, plans for claims, remembered ends."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from earmark.claimcontroller.claimsync import (
    Fate,
    fate_of_found,
    fate_of_pod,
    finalizer_patch,
    plan_claim,
    status_patch,
)
from earmark.claimcontroller.ends import Ends
from earmark.claimcontroller.index import OwnedClaims, PodIndex
from earmark.claimcontroller.names import done, generate_name
from earmark.claimcontroller.podsync import claim_statuses, plan_pod
from earmark.kube.objects import Pod, ResourceClaim, ResourceClaimTemplate
from earmark.kube.wellknown import DELETE_PROTECTION, POD_CLAIM_NAME

NOW = datetime(2026, 1, 1, tzinfo=UTC).isoformat()


def pod(**fields: Any) -> Pod:
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}], **fields.pop("spec", {})}
    metadata = {"name": "p", "namespace": "default", "uid": "uid-p", **fields.pop("metadata", {})}
    return msgspec.convert({"metadata": metadata, "spec": spec, **fields}, Pod, strict=False)


def claim(
    reserved: Sequence[str] = (),
    *,
    allocated: bool = True,
    protected: bool = True,
    going: bool = False,
    owner: str = "",
    **metadata: Any,
) -> ResourceClaim:
    meta: dict[str, Any] = {"name": "c", "namespace": "default", "uid": "uid-c", "resourceVersion": "7", **metadata}
    if protected:
        meta["finalizers"] = [DELETE_PROTECTION, "example.com/other"]
    if going:
        meta["deletionTimestamp"] = NOW
    if owner:
        meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}]
    status: dict[str, Any] = {"reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in reserved]}
    if allocated:
        status["allocation"] = {}
    return msgspec.convert({"metadata": meta, "status": status}, ResourceClaim, strict=False)


TEMPLATE = msgspec.convert(
    {
        "metadata": {"name": "one-gpu", "namespace": "default"},
        "spec": {
            "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
        },
    },
    ResourceClaimTemplate,
)


def plan(subject: Pod, *claims: ResourceClaim, template: ResourceClaimTemplate | None = TEMPLATE) -> Any:
    by_name = {item.metadata.name: item for item in claims}
    owned = [
        item for item in claims if any(owner.uid == subject.metadata.uid for owner in item.metadata.owner_references)
    ]
    return plan_pod(subject, claim=by_name.get, owned=owned, template=lambda name: template)


# --- names -----------------------------------------------------------------------------------------------------------


def test_generated_names_begin_with_pod_and_entry() -> None:
    assert generate_name("web-0", "gpu") == "web-0-gpu-"


def test_a_long_generated_name_keeps_a_part_of_both_and_has_no_dash_at_its_end() -> None:
    name = generate_name("p" * 60, "e" * 20)
    pod_part, entry_part = name.split("-")
    assert len(name) <= 57
    assert (len(pod_part), len(entry_part)) == (60 * 57 // 82, 20 * 57 // 82)


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (pod(), False),
        (pod(status={"phase": "Succeeded"}), True),
        (pod(status={"phase": "Failed"}, spec={"nodeName": "n1"}), True),
        (pod(metadata={"deletionTimestamp": NOW}), True),
        (pod(metadata={"deletionTimestamp": NOW}, spec={"nodeName": "n1"}), False),
    ],
)
def test_a_scheduled_pod_needs_its_claims_until_it_has_finished_or_gone(subject: Pod, expected: bool) -> None:
    assert done(subject) is expected


# --- pods ------------------------------------------------------------------------------------------------------------


def test_a_claim_is_made_from_the_template_for_a_pod_without_one() -> None:
    ((entry, made),) = plan(pod()).create
    assert entry == "gpu"
    assert made.metadata.generate_name == "p-gpu-"
    assert made.metadata.labels == {"a": "b"}
    assert made.metadata.annotations == {"c": "d", POD_CLAIM_NAME: "gpu"}
    (owner,) = made.metadata.owner_references
    assert (owner.api_version, owner.kind, owner.name, owner.uid, owner.controller) == ("v1", "Pod", "p", "uid-p", True)
    assert made.spec == TEMPLATE.spec.spec


def test_an_orphan_of_the_pod_is_used_instead_of_a_second_claim() -> None:
    orphan = claim(owner="uid-p", annotations={POD_CLAIM_NAME: "gpu"}, allocated=False)
    assert plan(pod(), orphan).create == ()
    assert plan(pod(), orphan).adopt == (("gpu", "c"),)


def test_a_claim_of_another_pod_is_not_taken_though_the_status_names_it() -> None:
    subject = pod(status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c"}]})
    assert len(plan(subject, claim(owner="uid-other")).create) == 1
    assert plan(subject, claim(owner="uid-p")).empty


def test_an_entry_that_needs_no_claim_gets_none() -> None:
    assert plan(pod(status={"resourceClaimStatuses": [{"name": "gpu"}]})).empty


def test_a_missing_template_is_a_problem_that_names_it() -> None:
    ((entry, problem),) = plan(pod(), template=None).problems
    assert entry == "gpu"
    assert '"one-gpu" not found' in problem


@pytest.mark.parametrize(
    "subject",
    [pod(metadata={"deletionTimestamp": NOW}), pod(status={"phase": "Succeeded"})],
    ids=["deleted", "finished"],
)
def test_a_pod_on_its_way_out_gets_nothing(subject: Pod) -> None:
    assert plan(subject).empty


def test_a_scheduled_pod_is_entered_into_its_allocated_claims_and_an_unscheduled_one_is_not() -> None:
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}
    assert plan(pod(spec=spec), claim()).reserve == ()
    assert [item.metadata.name for item in plan(pod(spec={**spec, "nodeName": "n1"}), claim()).reserve] == ["c"]
    assert plan(pod(spec={**spec, "nodeName": "n1"}), claim(["uid-p"])).reserve == ()
    assert plan(pod(spec={**spec, "nodeName": "n1"}), claim(allocated=False)).reserve == ()


def test_names_are_merged_into_the_status_sorted_by_entry() -> None:
    subject = pod(status={"resourceClaimStatuses": [{"name": "z", "resourceClaimName": "cz"}]})
    merged = claim_statuses(subject, [("a", "ca"), ("z", "new")])
    assert [(item.name, item.resource_claim_name) for item in merged] == [("a", "ca"), ("z", "new")]


# --- claims ----------------------------------------------------------------------------------------------------------


def test_the_last_reservation_takes_the_allocation_along_in_one_write() -> None:
    subject = claim(["a"])
    planned = plan_claim(subject, {"a": 0.0})
    assert planned.deallocate
    assert planned.remove_finalizer
    assert status_patch(subject, planned) == {
        "metadata": {"resourceVersion": "7"},
        "status": {"reservedFor": None, "allocation": None},
    }
    assert finalizer_patch(subject)["metadata"]["finalizers"] == ["example.com/other"]


def test_a_shared_claim_stays_allocated_while_a_consumer_is_left() -> None:
    subject = claim(["a", "b"])
    planned = plan_claim(subject, {"a": 0.0})
    assert not planned.deallocate
    assert not planned.remove_finalizer
    assert [entry.uid for entry in planned.reserved_for or ()] == ["b"]


def test_each_reservation_goes_when_its_own_delay_has_passed() -> None:
    planned = plan_claim(claim(["a", "b", "c"]), {"a": -1.0, "b": 5.0, "c": 3.0})
    assert [entry.uid for entry in planned.reserved_for or ()] == ["b", "c"]
    assert planned.wait_seconds == 3.0
    assert not planned.deallocate


def test_consumers_of_an_unknown_kind_stay_for_ever() -> None:
    subject = claim()
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g"}
    subject = msgspec.structs.replace(
        subject, status=msgspec.convert({"allocation": {}, "reservedFor": [group]}, type(subject.status))
    )
    assert not plan_claim(subject, {"g": 0.0}).writes_status


def test_an_allocated_claim_without_reservations_is_left_alone() -> None:
    planned = plan_claim(claim(), {})
    assert not planned.writes_status
    assert not planned.remove_finalizer


@pytest.mark.parametrize("allocated", [True, False])
def test_a_claim_that_is_being_deleted_loses_allocation_and_finalizer_when_nobody_uses_it(allocated: bool) -> None:
    planned = plan_claim(claim(going=True, allocated=allocated), {})
    assert planned.deallocate is allocated
    assert planned.remove_finalizer


def test_a_claim_that_is_being_deleted_is_kept_while_it_is_used() -> None:
    planned = plan_claim(claim(["a"], going=True), {})
    assert not planned.writes_status
    assert not planned.remove_finalizer


def test_an_allocation_without_the_finalizer_is_never_cleared() -> None:
    planned = plan_claim(claim(["a"], protected=False), {"a": 0.0})
    assert planned.reserved_for == ()
    assert not planned.deallocate


def test_a_generated_claim_is_deleted_once_its_pod_has_ended_and_its_delay_has_passed() -> None:
    assert plan_claim(claim(["a"]), {"a": 0.0}, owner=Fate.ENDED).delete
    assert not plan_claim(claim(["a"]), {"a": 1.0}, owner=Fate.ENDED).delete
    assert not plan_claim(claim(["a"]), {}, owner=Fate.STAYS).delete
    assert not plan_claim(claim(["a"]), {"a": 0.0}).delete
    assert not plan_claim(claim(going=True), {}, owner=Fate.ENDED).delete


@pytest.mark.parametrize(
    ("uid", "cached", "expected"),
    [
        ("uid-p", pod(), Fate.STAYS),
        ("uid-p", pod(metadata={"deletionTimestamp": NOW}, spec={"nodeName": "n1"}), Fate.STAYS),
        ("uid-p", pod(status={"phase": "Failed"}), Fate.ENDED),
        ("old", pod(), Fate.ENDED),
        ("uid-p", None, Fate.LOOK_UP),
        ("remembered", None, Fate.ENDED),
    ],
)
def test_a_consumer_is_judged_by_its_uid(uid: str, cached: Pod | None, expected: Fate) -> None:
    assert fate_of_pod(uid, cached, {"remembered"}) is expected


def test_what_the_api_does_not_know_has_ended() -> None:
    assert fate_of_found("uid-p", None) is Fate.ENDED
    assert fate_of_found("uid-p", pod()) is Fate.STAYS


# --- index -----------------------------------------------------------------------------------------------------------


def test_a_created_claim_counts_as_the_pods_before_any_watch_has_shown_it() -> None:
    owned = OwnedClaims()
    made = claim(owner="uid-p")
    owned.created(made)
    assert owned.of("uid-p") == (made,)
    assert owned.unseen(("default", "c")) == made
    owned.seen(made)
    assert owned.of("uid-p") == (made,)
    assert owned.unseen(("default", "c")) is None
    owned.gone(made)
    assert owned.of("uid-p") == ()


def test_the_index_follows_what_a_pod_uses() -> None:
    index = PodIndex()
    index.put(pod(status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c"}]}))
    assert index.users_of_claim(("default", "c")) == (("default", "p"),)
    assert index.users_of_template(("default", "one-gpu")) == (("default", "p"),)
    index.put(pod())
    assert index.users_of_claim(("default", "c")) == ()
    index.drop(pod())
    assert index.users_of_template(("default", "one-gpu")) == ()


# --- ends ------------------------------------------------------------------------------------------------------------


def test_the_first_end_counts() -> None:
    ends = Ends(10)
    assert ends.note("a", 1.0) == 1.0
    assert ends.note("a", 5.0) == 1.0


def test_the_oldest_ends_are_forgotten() -> None:
    ends = Ends(2)
    for number, uid in enumerate("abc"):
        ends.note(uid, float(number))
    assert ["a" in ends, "b" in ends, "c" in ends] == [False, True, True]
