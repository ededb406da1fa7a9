"""`doctor`: check everything, say what is wrong and how to fix it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.ops.setup.checks.finding import AREAS
from hermes_memory_pgvector.terminal import lines as terminal

if TYPE_CHECKING:
    from hermes_memory_pgvector.ops.setup.checks.finding import Finding

NAME = "doctor"
HELP = "check everything and say how to fix what is wrong"
GROUP = "set up"
EXAMPLES = (
    ("doctor", "check everything"),
    ("doctor --quiet", "show only what needs attention"),
    ("doctor --check --only database,journal", "for systemd, Nagios or a probe: silent while all is well"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--quiet", action="store_true", help="show only warnings and problems")
    parser.add_argument(
        "--check", action="store_true", help="print one line for each failed check and nothing else; see the exit code"
    )
    parser.add_argument("--strict", action="store_true", help="with --check: a warning is a failed check, too")
    parser.add_argument(
        "--only", type=_areas, default=AREAS, metavar="AREAS", help=f"check only these: {', '.join(AREAS)}"
    )


def run(args: argparse.Namespace) -> int:
    """Run all checks; 0 when it works, 1 for a problem, 2 when an endpoint does not answer."""
    from hermes_memory_pgvector.ops.setup.checks.examination import examine, exit_code, summary, tell

    home = options.home_of(args)
    if args.check and not args.json:
        return _check(examine(home, args.only), is_strict=args.strict)
    findings: list[Finding] = []
    if not args.json:
        terminal.say(f"Checking {home}")
    for finding in examine(home, args.only):
        findings.append(finding)
        if not args.json and not (args.quiet and finding.level == "ok"):
            tell(finding)
    code = exit_code(findings, is_strict=args.strict)
    if args.json:
        terminal.as_json({"home": str(home), "exit_code": code, "checks": [asdict(each) for each in findings]})
    else:
        terminal.say(summary(findings))
    return code


def _check(found: Iterable[Finding], *, is_strict: bool) -> int:
    """One line for each failed check: what is wrong, and what to do."""
    from hermes_memory_pgvector.ops.setup.checks.examination import exit_code

    findings = list(found)
    failed = [each for each in findings if each.level == "problem" or (is_strict and each.level == "warning")]
    for each in failed:
        hint = f" ({terminal.one_line(each.hint)})" if each.hint else ""
        print(f"{each.name}: {terminal.one_line(each.text)}{hint}")
    return exit_code(findings, is_strict=is_strict)


def _areas(text: str) -> tuple[str, ...]:
    given = tuple(each.strip() for each in text.split(","))
    unknown = [each for each in given if each not in AREAS]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no area {unknown[0]!r}; there are {', '.join(AREAS)}")
    return given
