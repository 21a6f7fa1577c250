"""An API whose store does not answer in time: the write is carried out, and its answer is a server error."""

from __future__ import annotations

from typing import Any

import pytest

from earmark.kube.api import ApiError


def answer_late(monkeypatch: pytest.MonkeyPatch, api: Any, method: str, times: int = 1) -> list[int]:
    """Carry out the next `times` calls of a method and answer 504 to them; return how many are left, as one number."""
    left = [times]
    original = getattr(api, method)

    async def call(*arguments: Any, **options: Any) -> Any:
        answer = await original(*arguments, **options)
        if left[0]:
            left[0] -= 1
            raise ApiError(504, "Timeout", "etcdserver: request timed out")
        return answer

    monkeypatch.setattr(api, method, call)
    return left
