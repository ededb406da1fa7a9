"""`doctor`: check everything, say what is wrong and how to fix it."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.setup import terminal

if TYPE_CHECKING:
    from hermes_memory_pgvector.setup.checks.finding import Finding

NAME = "doctor"
HELP = "check everything and say how to fix what is wrong"
GROUP = "set up"
EXAMPLES = (
    ("doctor", "check everything"),
    ("doctor --quiet", "show only what needs attention"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--quiet", action="store_true", help="show only warnings and problems")


def run(args: argparse.Namespace) -> int:
    """Run all checks; 0 when it works, 1 for a problem, 2 when an endpoint does not answer."""
    from hermes_memory_pgvector.setup.checks.examination import examine, exit_code, summary, tell

    home = options.home_of(args)
    findings: list[Finding] = []
    if not args.json:
        terminal.say(f"Checking {home}")
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
