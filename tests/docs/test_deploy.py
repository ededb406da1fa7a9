"""The files that people copy to deploy it are what the programs that read them accept."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from docs.pages import ROOT

DEPLOY = ROOT / "docs" / "deploy"


def test_the_compose_file_is_accepted_and_names_what_exists() -> None:
    document: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    services = document["services"]
    assert set(services) == {"postgres", "setup", "gateway"}
    for service in services.values():
        for volume in service["volumes"]:
            assert volume.partition(":")[0] in document["volumes"]
        if "build" in service:
            context = (DEPLOY / service["build"]["context"]).resolve()
            assert (context / service["build"]["dockerfile"]).samefile(DEPLOY / "Dockerfile")
    # A password on a command line is seen by everybody on the machine.
    assert all("PASSWORD" not in word for word in services["setup"]["command"])
    variables = {**os.environ, "POSTGRES_PASSWORD": "a-password", "API_SERVER_KEY": "a-key"}
    compose = ["docker", "compose"]
    if (
        shutil.which("docker")
        and subprocess.run([*compose, "version"], capture_output=True, check=False).returncode == 0
    ):
        command = [*compose, "-f", str(DEPLOY / "compose.yaml"), "--profile", "setup", "config", "--quiet"]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_the_image_copies_what_the_package_is_built_from() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"), re.M)
    names = [name for line in copied for name in line.split()]
    assert {"pyproject.toml", "README.md", "LICENSE", "src"} <= set(names)
    assert all((ROOT / name).exists() for name in names)


def test_the_unit_is_accepted(tmp_path: Path) -> None:
    text = (DEPLOY / "hermes-gateway.service").read_text(encoding="utf-8")
    sections = re.findall(r"^\[(\w+)\]$", text, re.M)
    assert sections == ["Unit", "Service", "Install"]
    assert "KillMode=process" in text
    if shutil.which("systemd-analyze"):
        # The program must exist where the unit is looked at.
        unit = tmp_path / "hermes-gateway.service"
        unit.write_text(re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", text, flags=re.M), encoding="utf-8")
        command = ["systemd-analyze", "verify", "--man=no", str(unit)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "hermes-gateway.service" not in done.stderr, done.stderr
