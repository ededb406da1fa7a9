"""The plugin folder passes what the host asks of a folder that a catalog offers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hermes_memory_pgvector.ops.setup import plugin_folder

MOST_FILES, MOST_BYTES, MOST_BYTES_OF_ONE = 400, 10 << 20, 1 << 20
CODE = {".py", ".js"}
USUAL_IN_CODE = {
    "agent_config_contract", "agent_config_mod", "context_exfil", "encoded_exfil", "env_exfil_fetch", "env_exfil_httpx",
    "env_exfil_requests", "fake_policy", "python_environ_get_secret", "python_getenv_secret", "python_os_environ",
    "send_to_url",
}  # fmt: skip
"""What newer hosts do not hold against the code of a plugin: that it reads its own settings and calls its endpoint."""

PROBE = """
import importlib.util, json, sys
class Context:
    def __init__(self): self.called = []
    def __getattr__(self, name): return lambda *args, **kwargs: self.called.append(name)
spec = importlib.util.spec_from_file_location("probe", sys.argv[1] + "/__init__.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
context = Context()
module.register(context)
print(json.dumps(context.called))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    plugin_folder.install(home)
    return home / "plugins" / "pgvector"


def files_of(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]


def test_it_is_small_enough_and_has_no_links(folder: Path) -> None:
    sizes = [path.stat().st_size for path in files_of(folder)]
    assert len(sizes) < MOST_FILES
    assert sum(sizes) <= MOST_BYTES
    assert max(sizes) <= MOST_BYTES_OF_ONE
    assert [path for path in folder.rglob("*") if path.is_symlink()] == []


def test_the_hosts_scanner_finds_nothing_that_needs_a_confirmation(folder: Path) -> None:
    from tools.skills_guard import scan_file

    found = [
        f"{finding.file}:{finding.line} {finding.pattern_id}: {finding.match}"
        for path in files_of(folder)
        for finding in scan_file(path, str(path.relative_to(folder)))
        if finding.severity in ("high", "critical")
        and not (path.suffix in CODE and finding.pattern_id in USUAL_IN_CODE)
    ]
    assert found == []


def test_it_registers_a_memory_provider_and_no_more_in_a_python_that_has_nothing(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROBE, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["register_memory_provider"]


def test_the_manifest_declares_what_is_registered(folder: Path) -> None:
    manifest = yaml.safe_load((folder / "plugin.yaml").read_text(encoding="utf-8"))
    assert manifest["name"] == "pgvector"
    assert manifest["version"]
    assert manifest["description"]
    assert manifest["requires_hermes"].startswith(">=0.")
    assert [manifest[f"provides_{kind}"] for kind in ("tools", "hooks", "middleware")] == [[], [], []]
    assert not {"pip_dependencies", "python_dependencies", "requires_env"} & set(manifest)
    assert not (folder / "pyproject.toml").exists()


def test_the_readme_discloses_what_it_starts_writes_listens_on_fetches_and_sends(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    for word in ("**Starts**", "**Listens**", "**Writes**", "**Fetches**", "**Sends**"):
        assert word in text
