"""The pictures in the documents are what the product prints."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("earmark_kep_pictures", Path(__file__).with_name("pictures.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pictures_are_what_the_product_prints(pictures: ModuleType) -> None:
    for path in pictures.DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        assert text == pictures.filled(text), f"{path.name}: python tests/kep/pictures.py"
