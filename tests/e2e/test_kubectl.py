"""The session of docs/kubectl.md, as it stands, with every kubectl that is there, against `earmark up`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import kubectl_session
from support.e2e_up import up
from support.kubectl_found import ABSENT, Kubectl, kubectls


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kubectl", [pytest.param(one, id=one.name) for one in kubectls()] or [None])
def test_the_documented_session_is_what_kubectl_shows(
    kubectl: Kubectl | None, tmp_path: Path, repository: Path
) -> None:
    if kubectl is None:
        pytest.skip(ABSENT)
    steps = kubectl_session.read((repository / "docs" / "kubectl.md").read_text(encoding="utf-8"))
    assert len(steps) > 25
    with up(tmp_path / "state", repository / "deploy" / "config" / "local.toml") as running:
        found = list(
            kubectl_session.differences(steps, kubectl.path, running.runtime.kubeconfig_path, tmp_path)
        )  # fmt: skip
    assert not found, "\n\n".join(found)


def test_the_comparison_sees_what_differs() -> None:
    step = kubectl_session.Step("c", "NAME AGE\na 3s\n...\nlast\n", watch=False)
    assert kubectl_session.difference(step, "NAME   AGE\na      12m\nmore\nlast\n") == ""
    assert kubectl_session.difference(step, "NAME AGE\nb 3s\nlast\n") != ""
    assert kubectl_session.difference(step, "NAME AGE\na 3s\nlast\nmore\n") != ""
    watch = kubectl_session.Step("c", "a 1s\nb 1s\n", watch=True)
    assert kubectl_session.difference(watch, "b 2s\nx\na 1s\n") == ""
    assert kubectl_session.difference(watch, "b 2s\n") != ""
