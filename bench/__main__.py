"""python -m bench run | report | compare | replay | recall: from the root of the repository."""

from __future__ import annotations

import argparse
import json
import runpy
import signal
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from bench.compare import compare, missing
from bench.measure import Result

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0 done, 1 worse than before or a scenario failed, 2 usage."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["recall"]:
        sys.argv = ["bench recall", *words[1:]]
        runpy.run_path(str(ROOT / "bench" / "recall_quality.py"), run_name="__main__")
        return 0
    options = _parser().parse_args(words)
    code: int = options.act(options)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="run | report | compare | replay | recall")
    run = commands.add_parser("run", help="measure both systems")
    run.add_argument("--size", choices=("small", "full"), default="small")
    run.add_argument("--only", default="", help="scenarios, separated by commas; all without it")
    run.add_argument("--cells", default="", help="sizes for recall, as 100000x100,1000000x1000 (rows x themes)")
    run.add_argument(
        "--alone", action="store_true", help="recall without the peer, whose index takes long to make at a million rows"
    )
    run.add_argument("--out", type=Path, default=RESULTS, help="folder for the result")
    run.set_defaults(act=_run)
    report = commands.add_parser("report", help="a run as Markdown")
    report.add_argument("result", type=Path)
    report.add_argument("--page", type=Path, help="write to this page and the folder of its name, not to stdout")
    report.set_defaults(act=_report)
    compare = commands.add_parser("compare", help="fail when a ratio got worse")
    compare.add_argument("old", type=Path)
    compare.add_argument("new", type=Path)
    compare.add_argument("--margin", type=float, default=0.25, help="share of a ratio that may be lost (0.25)")
    compare.set_defaults(act=_compare)
    replay = commands.add_parser("replay", help="ask a home's recall log again, and compare the answers")
    replay.add_argument("home", type=Path, help="a hermes home whose log holds questions (recall_log: text)")
    replay.add_argument("--at-least", type=float, default=0.0, help="fail when a smaller share of hits is found again")
    replay.set_defaults(act=_replay)
    return parser


def _run(options: argparse.Namespace) -> int:
    from bench import run
    from bench.report import table

    only = [word for word in options.only.split(",") if word]
    unknown = set(only) - {scenario.name for scenario in run.SCENARIOS}
    if unknown:
        known = ", ".join(scenario.name for scenario in run.SCENARIOS)
        print(f"no such scenario: {', '.join(sorted(unknown))}; there are {known}", file=sys.stderr)
        return 2
    alone = {"recall", "care", "store", "transfer", "reembed"}
    if options.alone and not (only and set(only) <= alone):
        print(f"--alone needs --only {', '.join(sorted(alone))}: the other scenarios compare", file=sys.stderr)
        return 2
    # Whoever stops a run, its server and its files go too.
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    path = options.out / f"{options.size}-{stamp}.json"
    cells = [
        (int(rows), int(themes)) for rows, themes in (cell.split("x") for cell in options.cells.split(",") if cell)
    ]
    result = run.run(options.size, only, path, cells, is_alone=options.alone)
    print(table(result))
    print(f"\n{path}")
    return 1 if result.problems else 0


def _replay(options: argparse.Namespace) -> int:
    from bench.replay import replay

    done = replay(options.home)
    print(json.dumps(asdict(done)))
    return 1 if done.found_again < options.at_least else 0


def _stop(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def _report(options: argparse.Namespace) -> int:
    from bench import recall_report
    from bench.report import all_plots, publish, tables_page

    if recall_report.is_recall_quality(options.result):
        if options.page is None:
            print(recall_report.page(json.loads(options.result.read_text(encoding="utf-8"))))
        else:
            recall_report.publish(options.result, options.page)
        return 0
    result = Result.load(options.result)
    if options.page is None:
        print(tables_page(result))
        return 0
    folder = publish(options.result, options.page)
    from bench.plots import draw

    for plot in all_plots(result):
        draw(plot, folder)
    return 0


def _compare(options: argparse.Namespace) -> int:
    old, new = Result.load(options.old), Result.load(options.new)
    changes = compare(old, new, options.margin)
    for change in changes:
        mark = "WORSE" if change.is_worse else "     "
        print(f"{mark} {-change.loss:+7.0%}  {change.old:10.4g} -> {change.new:10.4g}  {change.key}")
    for key in missing(old, new):
        print(f"not measured any more: {key}")
    worse = sum(change.is_worse for change in changes)
    print(f"{worse} of {len(changes)} figures lost more than {options.margin:.0%}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
