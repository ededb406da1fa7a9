"""`doctor`: examine everything, say what is wrong, and what helps."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from hermes_memory_pgvector.cli import journals, options
from hermes_memory_pgvector.cli.checks import database, journal
from hermes_memory_pgvector.cli.checks import home as check_home
from hermes_memory_pgvector.cli.checks.finding import Finding
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.setup import terminal

NAME = "doctor"
HELP = "examine everything and say what helps"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--quiet", action="store_true", help="only what is not in order")


def run(args: argparse.Namespace) -> int:
    """Examine; 0 when nothing keeps it from working, 1 for a problem, 2 when an endpoint does not answer."""
    home = options.home_of(args)
    findings: list[Finding] = []
    if not args.json:
        terminal.say(f"Examining {home}")
    for finding in examine(home):
        findings.append(finding)
        if not args.json and not (args.quiet and finding.level == "ok"):
            tell(finding)
    code = exit_code(findings)
    if args.json:
        terminal.as_json({"home": str(home), "exit_code": code, "checks": [asdict(each) for each in findings]})
    else:
        terminal.say(summary(findings))
    return code


def examine(home: Path) -> Iterator[Finding]:
    """All checks, in the order in which one explains the next."""
    parsed = load(home)
    seen = database.Seen()
    yield from check_home.check(home, parsed)
    yield from database.check_embedder(home, parsed.settings, seen)
    yield from database.check(home, parsed.settings, journals.writers(home), seen)
    yield from journal.check(home, parsed.settings, seen)


def exit_code(findings: Sequence[Finding]) -> int:
    """What the findings mean for a script."""
    if any(each.is_unreachable for each in findings):
        return 2
    return 1 if any(each.level == "problem" for each in findings) else 0


def tell(finding: Finding) -> None:
    """One finding as a line, with what helps below it."""
    terminal.bullet(finding.level, terminal.one_line(f"{finding.name:<13} {finding.text}"), finding.hint)


def summary(findings: Sequence[Finding]) -> str:
    """All findings in a sentence."""
    problems = sum(each.level == "problem" for each in findings)
    warnings = sum(each.level == "warning" for each in findings)
    if not problems and not warnings:
        return f"All {len(findings)} checks are in order."
    parts = [terminal.count(number, noun) for number, noun in ((problems, "problem"), (warnings, "warning")) if number]
    return f"{' and '.join(parts)} in {len(findings)} checks."
