"""Settings: read strictly, with errors that name file and field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from earmark.runtime.process import SERVICES, RuntimeSettings
from earmark.runtime.settings import SettingsError, check_sections, load, read_file


@dataclass(frozen=True, slots=True)
class Plugin:
    name: str
    service: str = "x"


@dataclass(frozen=True, slots=True)
class Settings:
    seconds: float = 1.0
    name: str = ""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    plugins: tuple[Plugin, ...] = ()


def read(text: str, tmp_path: Path, environ: Mapping[str, str] | None = None) -> Settings:
    file = tmp_path / "c.toml"
    file.write_text(text)
    return load(Settings, "framework", file=file, tables=read_file(file), environ=environ or {})


def test_values_come_from_the_services_table(tmp_path: Path) -> None:
    settings = read('[framework]\nseconds = 2\nplugins = [{name = "a"}]\n[nodes]\nseconds = 3\n', tmp_path)
    assert settings == Settings(seconds=2.0, plugins=(Plugin("a"),))


def test_common_keys_reach_the_services_that_have_them(tmp_path: Path) -> None:
    settings = read("[common]\nfeature_gates = {DRAPreemption = true}\nother = 1\n", tmp_path)
    assert settings.feature_gates == {"DRAPreemption": True}


def test_the_environment_wins(tmp_path: Path) -> None:
    environ = {
        "EARMARK_FRAMEWORK_SECONDS": "5",
        "EARMARK_FRAMEWORK_NAME": "7",
        "EARMARK_FRAMEWORK_FEATURE_GATES": "{A = true}",
        "EARMARK_NODES_SECONDS": "9",
    }
    settings = read("[framework]\nseconds = 2\n", tmp_path, environ)
    assert settings == Settings(seconds=5.0, name="7", feature_gates={"A": True})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[framework]\nsecond = 2", r"c\.toml: \[framework\] second: unknown setting; did you mean 'seconds'\?"),
        ('[framework]\nseconds = "x"', r"c\.toml: \[framework\] seconds: Expected `float`, got `str`"),
        ("[framework]\nplugins = [{nam = 1}]", r"\[framework\] plugins\[0\]\.nam: unknown setting; did you mean"),
        ("framework = 1", r"framework: want a table"),
        ("[framework]\nseconds = ?\n", r"c\.toml: .*line 2"),
    ],
)
def test_a_bad_file_is_refused_with_file_and_field(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        read(text, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_bad_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="EARMARK_FRAMEWORK_SECONDS seconds: Expected `float`"):
        read("", tmp_path, {"EARMARK_FRAMEWORK_SECONDS": "soon"})
    with pytest.raises(SettingsError, match="EARMARK_FRAMEWORK_SECOND: framework has no setting 'second'"):
        read("", tmp_path, {"EARMARK_FRAMEWORK_SECOND": "1"})


def test_a_table_for_no_service_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"\[framwork\]: no such service; did you mean 'framework'"):
        check_sections({"framwork": {}}, SERVICES, Path("c.toml"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.toml: No such file"):
        read_file(tmp_path / "none.toml")


def test_sockets_live_in_the_state_folder_unless_told_otherwise(tmp_path: Path) -> None:
    settings = RuntimeSettings(state_dir=str(tmp_path), addresses={"nodes": "127.0.0.1:5000"})
    assert settings.address("framework") == f"unix:{tmp_path}/run/framework.sock"
    assert settings.address("nodes") == "127.0.0.1:5000"
