"""python -m bench run | report | recall | gateway: from the root of the repository."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench.measure import Result

RESULTS = Path(__file__).resolve().parent / "results"


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0 done, 1 a scenario failed, 2 usage."""
    options = _parser().parse_args(arguments)
    code: int = options.act(options)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="run | report | recall | gateway")
    run = commands.add_parser("run", help="measure both systems")
    run.add_argument("--size", choices=("small", "full"), default="small")
    run.add_argument("--only", default="", help="scenarios, separated by commas; all without it")
    run.add_argument("--out", type=Path, default=RESULTS, help="folder for the result")
    run.set_defaults(act=_run)
    report = commands.add_parser("report", help="a result as Markdown")
    report.add_argument("result", type=Path)
    report.add_argument("--page", type=Path, help="write to this page and the folder of its name, not to stdout")
    report.set_defaults(act=_report)
    recall = commands.add_parser("recall", help="recall quality on LongMemEval and LoCoMo")
    recall.add_argument("--data", type=Path, required=True, help="folder with longmemeval_s*.json[.gz], locomo*.json")
    recall.add_argument("--sets", default="locomo,longmemeval")
    recall.add_argument("--json", type=Path, help="write the figures here, for report")
    recall.add_argument("--embed-url", default="", help="an embedding endpoint; the local model without it")
    recall.add_argument("--embed-model", default="nomic-embed-text", help="the model's name there")
    recall.add_argument("--turn-rule", choices=("each", "pair"), help="store only what an agent keeps by this rule")
    recall.set_defaults(act=_recall)
    cluster = commands.add_parser("cluster", help="a coordinator and workers beside one Postgres; PGINSTALL names both")
    cluster.add_argument("--turns", type=int, default=200_000)
    cluster.add_argument("--themes", type=int, default=500)
    cluster.add_argument("--questions", type=int, default=400)
    cluster.set_defaults(act=_cluster)
    gateway = commands.add_parser("gateway", help="what the provider adds to a request of the real gateway")
    gateway.add_argument("--rounds", type=int, default=5)
    gateway.add_argument("--requests", type=int, default=96, help="requests of a round, with and without (default: 96)")
    gateway.add_argument("--page", type=Path, help="write the table to this page, too")
    gateway.set_defaults(act=_gateway)
    return parser


def _run(options: argparse.Namespace) -> int:
    from bench import run
    from bench.report import table

    only = [word for word in options.only.split(",") if word]
    if unknown := set(only) - run.SCENARIOS.keys():
        print(f"no such scenario: {', '.join(sorted(unknown))}; there are {', '.join(run.SCENARIOS)}", file=sys.stderr)
        return 2
    # Whoever stops a run, its server and its files go too.
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    path = options.out / f"{options.size}-{stamp}.json"
    result = run.run(options.size, only, path)
    print(table(result))
    print(f"\n{path}")
    return 1 if result.problems else 0


def _stop(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def _report(options: argparse.Namespace) -> int:
    from bench import recall_report, report

    if recall_report.is_recall_quality(options.result):
        shown = recall_report.page(json.loads(options.result.read_text(encoding="utf-8")))
        publish = recall_report.publish
    else:
        shown, publish = report.tables_page(Result.load(options.result)), report.publish
    if options.page is None:
        print(shown)
    else:
        publish(options.result, options.page)
    return 0


def _recall(options: argparse.Namespace) -> int:
    from bench import recall_quality
    from hermes_memory_pgvector.config.settings import Settings

    embedder = recall_quality.embedder_of(options.embed_url, options.embed_model)
    keeping = Settings(turn_rule=options.turn_rule) if options.turn_rule else None
    recall_quality.measure_sets(options.data, options.sets.split(","), options.json, embedder, keeping)
    return 0


def _gateway(options: argparse.Namespace) -> int:
    from bench import gateway

    return gateway.measure(options.rounds, options.requests, options.page)


def _cluster(options: argparse.Namespace) -> int:
    from bench import cluster

    cluster.run(options.turns, options.themes, options.questions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
