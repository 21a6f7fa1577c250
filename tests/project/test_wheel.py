"""The wheel holds both source roots as one package."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path


def test_the_wheel_has_services_and_clients_with_their_data(repository: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=repository, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    data = [
        "earmark/" + str(file.relative_to(repository / root / "earmark"))
        for root in ("services", "clients")
        for file in sorted((repository / root / "earmark").rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts and not file.name.startswith(".")
    ]
    assert [name for name in data if name not in names] == []
    assert "earmark/__init__.py" not in names
