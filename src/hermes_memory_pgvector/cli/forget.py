"""`forget`: erase what somebody names, everywhere it can be reached, and prove it."""

from __future__ import annotations

import argparse
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import entries, options, times
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.terminal.sink import Styled
from hermes_memory_pgvector.text.names import session_name, theme_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_memory_pgvector.care.forgetting import Forgetting, Forgotten, Plan
    from hermes_memory_pgvector.care.leftovers import Line
    from hermes_memory_pgvector.care.verification import Check, Verification
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.postgres.pool import Pool
    from hermes_memory_pgvector.store.named_rows import FoundMemory, FoundTurn
    from hermes_memory_pgvector.store.receipts import Receipt
    from hermes_memory_pgvector.store.selection import Selection

NAME = "forget"
ALIASES = ("cleanup",)
HELP = "erase rows, a theme, a session, a person or a text for good"
GROUP = "erase"
EXAMPLES = (
    ("forget --match 'Anna Schmidt'", "what is there of her: a dry run"),
    ("forget --user 'whatsapp:+4915112345678' --execute", "everything of one person"),
    ("forget --verify 7", "prove that receipt 7 holds"),
)

READ_SECONDS = 30.0
SAMPLES = 5
CRITERIA = ("theme", "session", "user", "match", "id", "before", "identities")
NOUNS = {
    "turns": "turns",
    "memories": "memories",
    "history": "history events",
    "delegations": "delegations",
    "dead_letters": "dead letters",
    "journal_items": "items in journal files",
    "file_entries": "entries in files as last compared",
    "recall_log": "logged recalls",
    "stamps": "rows with it in their metadata",
    "mended": "neighbouring turns indexed anew",
}
_ROW = re.compile(r"([mt]?)([0-9]{1,18})", re.IGNORECASE)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--theme", metavar="THEME", help="everything of a theme")
    parser.add_argument("--session", metavar="SESSION", help="everything of a session, and memories written in it")
    parser.add_argument("--user", metavar="WHO", help="a person: the pseudonym (dm-…) or the messaging key behind it")
    parser.add_argument("--match", metavar="TEXT", help="whatever contains this text; case does not matter")
    parser.add_argument("--id", action="append", type=_row, metavar="ID", help="one row: m12 a memory, t34 a turn")
    parser.add_argument("--before", type=times.moment, metavar="TIME", help=f"only what is older: {times.FORMS}")
    parser.add_argument("--identities", metavar="THEMES", help="several themes, with commas between them")
    parser.add_argument("--execute", action="store_true", help="really do it")
    parser.add_argument(
        "--verify", type=options.positive, metavar="RECEIPT", help="search for leftovers; with --match for the text too"
    )
    parser.add_argument("--receipts", action="store_true", help="list what was forgotten so far")


def run(args: argparse.Namespace) -> int:
    """Show what would be forgotten, forget it, or verify that it is."""
    from hermes_memory_pgvector.care.forgetting import Forgetting
    from hermes_memory_pgvector.store import schema

    home = options.home_of(args)
    settings = load(home).settings
    with parts.open_pool(home, settings) as pool:
        with pool.connection(Deadline.after(READ_SECONDS)) as connection:
            schema.verify(connection)
        if args.receipts:
            return _list(pool, json=args.json)
        if args.verify is not None:
            return _verify(pool, home, settings, args)
        selections, named, themes = _selections(args, home, settings)
        forgetting = Forgetting(pool, home, settings, selections, named)
        if themes and forgetting.unfinished() is None:
            # One that was interrupted may have erased everything of a theme already.
            _check_themes(pool, home, themes)
        if args.execute:
            return _execute(forgetting, home, json=args.json)
        return _show(forgetting.plan(), args)


def _show(plan: Plan, args: argparse.Namespace) -> int:
    if args.json:
        terminal.as_json(
            {
                "executed": False,
                "counts": plan.counts,
                "themes": [asdict(each) for each in plan.themes],
                "samples": [
                    *(
                        {"id": f"m{each.id}", "theme": each.theme, "content": each.content}
                        for each in plan.memories[:SAMPLES]
                    ),
                    *({"id": f"t{each.id}", "theme": each.theme, "content": each.content} for each in plan.sample),
                ],
                "files": [_line(each) for each in plan.standing],
                "host_messages": plan.host_messages,
                "unfinished": None if plan.begun is None else plan.begun.id,
                "older": list(plan.older),
            }
        )
        return 0
    if plan.begun is not None:
        at = times.shown(plan.begun.until.at)
        terminal.bullet("warning", f"receipt {plan.begun.id} of {at} UTC was interrupted; --execute goes on with it")
    for each in plan.older:
        terminal.bullet("warning", each)
    if plan.is_empty and plan.begun is None:
        terminal.bullet("ok", "nothing is stored that this names")
        _tell_host(plan.standing, plan.host_messages)
        return 0
    terminal.bullet("warning", f"dry run, nothing is changed: would forget {_counted(plan.counts)}")
    if plan.themes:
        terminal.table(
            ("theme", "turns", "sessions", "from", "to"),
            [
                (each.theme, terminal.number(each.turns), terminal.number(each.sessions), f"{each.oldest:%Y-%m-%d}",
                 f"{each.newest:%Y-%m-%d}")
                for each in plan.themes
            ],
            right=(1, 2),
        )  # fmt: skip
    words = (args.match or "").lower().split()
    for memory in plan.memories[:SAMPLES]:
        head = f"m{memory.id}  {memory.updated_at:%Y-%m-%d}  {memory.theme}/{memory.target}"
        entries.tell([Styled(terminal.one_line(head), "faint")], memory.content, words=words)
    for turn in plan.sample:
        head = f"t{turn.id}  {turn.ts:%Y-%m-%d}  {turn.theme}/{turn.role}"
        entries.tell([Styled(terminal.one_line(head), "faint")], turn.content, words=words)
    _tell_host(plan.standing, plan.host_messages)
    terminal.bullet("note", "to do it", terminal.command("forget", *_given(args), "--execute"))
    return 0


def _execute(forgetting: Forgetting, home: Path, *, json: bool) -> int:
    from hermes_memory_pgvector.care import actor
    from hermes_memory_pgvector.care.leftovers import BEYOND

    done = forgetting.carry_out(actor.operator(home))
    receipt = done.receipt
    remains = any("is writing to" in each or "forget again" in each for each in receipt.unreached if each not in BEYOND)
    if json:
        terminal.as_json({"executed": True, **_document(done)})
        return 3 if remains else 0
    if done.is_resumed:
        terminal.bullet(
            "note", f"receipt {receipt.id} was interrupted before; it went on, and what was said since is new"
        )
    if not any(receipt.counts.values()):
        terminal.bullet("ok", "nothing was stored that this names; tombstones keep it out from now on")
    else:
        terminal.bullet("ok", f"forgotten: {_counted(receipt.counts)}")
    terminal.pairs(
        [
            ("receipt", receipt.id),
            ("digest", receipt.digest),
            ("until", f"{times.shown(receipt.forgotten_at)} UTC; what is said later is new"),
        ]
    )
    _tell_host(done.standing, done.host_messages)
    terminal.say("  not reached from here:")
    for each in receipt.unreached:
        terminal.bullet("warning" if each not in BEYOND and "forget again" in each else "note", each)
    terminal.bullet("note", "to prove it", terminal.command("forget", "--verify", str(receipt.id)))
    return 3 if remains else 0


def _verify(pool: Pool, home: Path, settings: Settings, args: argparse.Namespace) -> int:
    from hermes_memory_pgvector.care.verification import verify

    found = verify(pool, home, settings, args.verify, _match(args), _themes(args))
    if args.json:
        terminal.as_json(_verified(found))
        return 0 if found.passed else 1
    if found.receipt.finished_at is None:
        terminal.bullet(
            "problem", f"receipt {found.receipt.id} was never finished", "run the same forget again: it goes on"
        )
    elif not found.is_intact:
        terminal.bullet("problem", "the receipt or its tombstones were changed since: the digest does not fit")
    else:
        terminal.bullet("ok", f"receipt {found.receipt.id} of {times.shown(found.receipt.forgotten_at)} UTC is whole")
    clean = [check for check in found.checks if check.where.startswith("table ") and not check.found]
    terminal.bullet("ok", f"{terminal.count(len(clean), 'table')}: searched, nothing left")
    for check in found.checks:
        if check not in clean:
            _tell_check(check)
    for check in found.server_files:
        if check.found < 0:
            _tell_check(check)
            continue
        hint = "old versions of rows: VACUUM FULL removes those of tables; the log is overwritten in time"
        terminal.bullet(
            "warning" if check.found else "ok", f"{check.where}: {check.found} hold it", hint * bool(check.found)
        )
    for each in found.besides:
        terminal.bullet("note", each)
    _tell_host(found.standing, 0)
    terminal.say("  cannot be verified from here:")
    for each in found.unverified:
        terminal.bullet("note", each)
    if found.passed:
        terminal.bullet("ok", "nothing of it is left")
    else:
        terminal.bullet("problem", "something is left", "forget it again")
    return 0 if found.passed else 1


def _tell_check(check: Check) -> None:
    if check.found < 0:
        terminal.bullet("warning", f"{check.where}: could not be searched")
    else:
        terminal.bullet("problem" if check.found else "ok", f"{check.where}: {check.found} left")


def _list(pool: Pool, *, json: bool) -> int:
    from hermes_memory_pgvector.store import receipts

    with pool.connection(Deadline.after(READ_SECONDS)) as connection:
        found = receipts.listed(connection, 100)
    if json:
        terminal.as_json([_receipt(each) for each in found])
    elif not found:
        terminal.say("Nothing was forgotten so far.")
    else:
        rows = [
            (
                each.id,
                times.shown(each.forgotten_at),
                each.actor,
                " ".join(each.named),
                _counted(each.counts) or "nothing",
            )
            for each in found
        ]
        terminal.table(("receipt", "when (UTC)", "who", "by", "what"), rows, right=(0,))
    return 0


def _check_themes(pool: Pool, home: Path, themes: Sequence[str]) -> None:
    from hermes_memory_pgvector.care.forgetting import check_theme, waiting_themes

    with pool.transaction(Deadline.after(READ_SECONDS)) as connection:
        waiting = waiting_themes(home)
        for theme in themes:
            check_theme(connection, theme, waiting)


def _themes(args: argparse.Namespace) -> list[str]:
    themes = [] if args.theme is None else [options.named("--theme", theme_name(args.theme))]
    if args.identities is not None:
        listed = [theme_name(each) for each in args.identities.split(",") if each.strip()]
        themes = [options.named("--identities", theme) for theme in listed or [""]] + themes
    return themes


def _selections(
    args: argparse.Namespace, home: Path, settings: Settings
) -> tuple[list[Selection], list[str], list[str]]:
    """What the options name, the names of the options, and the themes among it."""
    from hermes_memory_pgvector.store.selection import Selection

    named = [name for name in CRITERIA if getattr(args, name) is not None]
    if not named:
        raise ConfigError("say what to forget: --theme, --session, --user, --match, --id or --before")
    base = Selection(
        session_id=None if args.session is None else options.named("--session", session_name(args.session)),
        before=args.before,
        match=_match(args),
    )
    themes = _themes(args)
    found = [replace(base, theme=theme) for theme in themes] or [base]
    if args.id:
        memories = tuple(number for letter, number in args.id if letter == "m")
        turns = tuple(number for letter, number in args.id if letter == "t")
        found = [replace(each, turn_ids=turns or None, memory_ids=memories or None) for each in found]
        if turns and memories:
            found = [part for each in found for part in (replace(each, memory_ids=None), replace(each, turn_ids=None))]
    if args.user is not None:
        options.named("--user", args.user.strip())
        if themes:
            raise ConfigError("--user names a theme by itself; leave --theme out")
        found = [part for each in found for part in _person(each, args.user, home, settings)]
    return found, named, themes


def _match(args: argparse.Namespace) -> str | None:
    if args.match is None:
        return None
    text: str = args.match.strip()
    if len(text) < 3:
        raise ConfigError("--match needs at least three characters")
    return text


def _person(base: Selection, who: str, home: Path, settings: Settings) -> list[Selection]:
    """A person: the theme of their direct chat or room, and what they said in rooms that name the speaker."""
    from hermes_memory_pgvector.capture import identity
    from hermes_memory_pgvector.config.home import pseudonym_key
    from hermes_memory_pgvector.values import is_private_theme

    given = who.strip().casefold()
    if is_private_theme(given):
        return [replace(base, theme=given)]
    theme = identity.theme_of(given, settings, lambda: pseudonym_key(home)).theme
    if not is_private_theme(theme):
        raise ConfigError(
            f"{who!r} is neither a pseudonym (dm-…, group-…) nor a key of a messaging platform, such as "
            "agent:main:whatsapp:dm:4915112345678; for a theme use --theme, for a name --match"
        )
    names = dict.fromkeys((given, given.rpartition(":")[2], given.rpartition(":")[2].lstrip("+")))
    people = (identity.person(name, pseudonym_key(home)) for name in names if name)
    return [replace(base, theme=theme), replace(base, authors=tuple(name for name in (*names, *people) if name))]


def _row(text: str) -> tuple[str, int]:
    match = _ROW.fullmatch(text.strip())
    if match is None or not match[1]:
        raise argparse.ArgumentTypeError(f"{text!r} names no row: m12 is a memory, t34 is a turn")
    return match[1].lower(), int(match[2])


def _given(args: argparse.Namespace) -> list[str]:
    """The options as they were given."""
    found: list[str] = []
    for name in ("theme", "session", "user", "match", "identities"):
        if getattr(args, name):
            found += options.again(f"--{name}", getattr(args, name))
    for letter, number in args.id or ():
        found += ["--id", f"{letter}{number}"]
    return [*found, *(["--before", args.before.isoformat()] if args.before else [])]


def _tell_host(lines: Sequence[Line], messages: int) -> None:
    for line in lines:
        terminal.bullet(
            "warning",
            f"{line.path}, line {line.line}: still holds it ({terminal.count(line.characters, 'character')})",
            "this file is the host's: delete the entry there; until then it stays out of the database",
        )
    if messages:
        terminal.bullet(
            "warning",
            f"{terminal.count(messages, 'message')} in the host's own session store (state.db) hold it",
            "to delete a session there: hermes sessions delete SESSION",
        )


def _counted(counts: Any) -> str:
    return ", ".join(
        terminal.count(number, _singular(noun), noun) for name, noun in NOUNS.items() if (number := counts.get(name, 0))
    )


def _singular(noun: str) -> str:
    head, _, rest = noun.partition(" in ")
    head = head[:-3] + "y" if head.endswith("ies") else head.removesuffix("s")
    return f"{head} in {rest}" if rest else head


def _sample(letter: str, row: FoundMemory | FoundTurn) -> dict[str, Any]:
    return {"id": f"{letter}{row.id}", "theme": row.theme, "content": row.content}


def _line(line: Line) -> dict[str, Any]:
    return {"path": str(line.path), "line": line.line, "characters": line.characters}


def _receipt(receipt: Receipt) -> dict[str, Any]:
    return {**asdict(receipt), "named": list(receipt.named), "unreached": list(receipt.unreached)}


def _document(done: Forgotten) -> dict[str, Any]:
    return {
        "receipt": _receipt(done.receipt),
        "resumed": done.is_resumed,
        "counts": done.receipt.counts,
        "files": [_line(each) for each in done.standing],
        "host_messages": done.host_messages,
    }


def _verified(found: Verification) -> dict[str, Any]:
    return {
        "receipt": _receipt(found.receipt),
        "passed": found.passed,
        "intact": found.is_intact,
        "checks": [{"where": each.where, "found": each.found} for each in (*found.checks, *found.server_files)],
        "besides": list(found.besides),
        "files": [_line(each) for each in found.standing],
        "unverified": list(found.unverified),
    }
