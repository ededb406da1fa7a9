"""The published hermes-memory-pgvector 1.0.0: what its users' databases were made by."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import hermes_memory_pgvector

WHEEL = "hermes_memory_pgvector-1.0.0-py3-none-any.whl"
DIM = 768
"""How many numbers its vectors have."""


@cache
def migrations() -> tuple[str, ...]:
    """Its migrations in their order; the first is the schema that it began with."""
    with zipfile.ZipFile(_wheel()) as wheel:
        names = sorted(name for name in wheel.namelist() if "/migrations/" in name and name.endswith(".sql"))
        assert len(names) == 5, names
        return tuple(wheel.read(name).decode("utf-8") for name in names)


def _wheel() -> Path:
    """The wheel, from the package index on first use."""
    kept = Path(hermes_memory_pgvector.__file__).parents[2] / ".hosts" / WHEEL
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            subprocess.run([*pip, "--dest", folder, "hermes-memory-pgvector==1.0.0"], check=True)
            Path(folder, WHEEL).replace(kept)
    return kept
