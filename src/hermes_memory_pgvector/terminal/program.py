"""The command line: one parser for all commands, the first page of help, and one sentence for a mistake.

Every operation is a command, which takes `--hermes-home --json --color --help`, too, before or after its name.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from hermes_memory_pgvector.terminal import sink
from hermes_memory_pgvector.terminal.operation import PROGRAM, Operation
from hermes_memory_pgvector.terminal.sink import WHENS, Styled

Example = tuple[str, str]
Run = Callable[[Operation, argparse.Namespace], int]
GROUPS: Final = ("set up", "see", "correct", "erase", "move", "run")
USAGE: Final = 2
HELP_WIDTH = 100
EXAMPLES_HEAD = "examples:\n"
NEAR_ENOUGH = 0.75
SYNONYMS: Final[Mapping[str, str]] = {
    "audit": "list audit", "cat": "show", "change": "edit", "check": "doctor", "dashboard": "ui",
    "delete": "forget", "erase": "forget", "events": "list events", "find": "recall", "fleet": "status --fleet",
    "get": "show", "grant": "up --own-database", "health": "doctor", "hide": "mute", "homes": "status --fleet",
    "init": "up", "log": "list events", "logs": "list audit", "ls": "list", "memories": "list memories",
    "merge": "theme merge", "page": "ui", "purge": "forget", "quarantine": "mute", "query": "recall", "remember": "add",
    "remove": "forget", "rename": "theme rename", "restore": "backup restore FILE, or undo --to TIME",
    "restore-backup": "backup restore", "revert": "undo", "rm": "forget", "save": "add", "search": "recall",
    "sessions": "list sessions", "setup": "up", "start": "up", "stop": "up --stop", "tail": "list --follow",
    "themes": "list themes", "tour": "try", "transcript": "show", "turns": "list turns", "unmute": "mute --undo",
    "update": "edit", "version": "--version", "web": "ui", "why-not": "why",
}  # fmt: skip
"""What people type who know other programs, and the command that does it here."""
_LOGIN: Final = {
    "--dsn": "config set dsn DSN, once; or the variable HERMES_PGVECTOR_DSN", "--config": "--hermes-home DIR",
}  # fmt: skip
FORMER: Final[Mapping[str, Mapping[str, str]]] = {
    "status": _LOGIN,
    "up": {"--remove": "uninstall --execute", "--force": "up, once the other plugin folder is out of the way"},
    "theme": _LOGIN | {"--force": "the same without it: the dry run says how many both have"},
    "forget": _LOGIN | {
        "--days": "config set ttl_days DAYS, which agents follow as well; then: prune",
        "--identities": "cleanup --theme NAME, once for each", "--tables": "forget with the ids of the rows: m12, t34",
    },
    "reembed": _LOGIN | {
        "--dry-run": "reembed --status", "--batch-size": "the same without it", "--tables": "the same without it",
        "--embed-url": "reembed --url", "--embed-model": "reembed --model", "--embed-dim": "reembed --dim",
        "--embed-protocol": "reembed --protocol",
    },
}  # fmt: skip
"""Options of the published package's commands, and what to type instead; they do nothing."""


def given(operation: Operation, args: argparse.Namespace) -> dict[str, Any]:
    """The options of an operation as somebody typed them."""
    return {
        each.key: ((getattr(args, each.key) or []) if each.many else getattr(args, each.key))
        for each in operation.all_options
    }


def add_global(parser: argparse.ArgumentParser, *, is_root: bool = False) -> None:
    """Add the options every command takes; those of a command leave alone what stands before its name."""
    nothing: Any = argparse.SUPPRESS
    told: dict[str, Any] = {"help": nothing} if is_root else {}
    parser.add_argument(
        "--hermes-home", type=Path, metavar="DIR", default=None if is_root else nothing,
        **({"help": "hermes home (default: $HERMES_HOME, ~/.hermes)"} | told),
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true", default=False if is_root else nothing,
        **({"help": "print the result as JSON"} | told),
    )  # fmt: skip
    parser.add_argument(
        "--color", choices=WHENS, metavar="WHEN", default="auto" if is_root else nothing,
        **({"help": "colours: auto (default), always or never; NO_COLOR=1 also turns them off"} | told),
    )  # fmt: skip


class HelpFormatter(argparse.HelpFormatter):
    """Help that fits the terminal; examples and the list of commands stay as they are."""

    def __init__(self, prog: str, width: int | None = None) -> None:
        super().__init__(prog, max_help_position=26, width=width or _room())

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return f"{text}\n" if "\n" in text else super()._fill_text(text, width, indent)


class Former(argparse.Action):
    """An option of the published package: a sentence says what to type instead."""

    def __call__(self, *_: Any) -> NoReturn:
        """Refuse it."""
        refuse(f"there is no option {self.option_strings[0]}; instead: {self.const}")


class Commands(argparse._SubParsersAction):  # type: ignore[type-arg]
    """A choice of commands that answers a mistyped one with those that look like it, or mean the same."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # argparse would refuse an unknown word itself, with nothing but the list of all of them.
        self.choices = None  # type: ignore[assignment]

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Hand over to the command's own parser."""
        given = str(values[0]) if values else ""
        known = self.parsers
        if given not in known:
            meant = _synonym(parser.prog, given, known) or did_you_mean(given, self.listed)
            refuse(f"there is no command {given!r}{meant}", "" if meant else parser.prog)
        super().__call__(parser, namespace, values, option_string)

    @property
    def parsers(self) -> dict[str, argparse.ArgumentParser]:
        """The commands' parsers by name."""
        return dict(self._name_parser_map)

    @property
    def helps(self) -> dict[str, str]:
        """One line for each command, without aliases."""
        return {str(each.dest): str(each.help or "") for each in self._choices_actions}

    @property
    def listed(self) -> dict[str, argparse.ArgumentParser]:
        """The parsers of the commands that help lists."""
        return {name: each for name, each in self.parsers.items() if name in self.helps}


class Parser(argparse.ArgumentParser):
    """A parser of ours: examples below its help, one sentence for a mistake."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", HelpFormatter)
        self._is_sorting = False
        super().__init__(**kwargs)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Let options stand between the arguments of a command, too."""
        if self._is_sorting or commands_of(self) is not None:
            return super().parse_known_args(args, namespace)
        self._is_sorting = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_sorting = False

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Answer a wrong word where one of several is needed with the one that was meant, or with all."""
        if action.choices is not None and value not in action.choices:
            before = action.option_strings[-1] if action.option_strings else self.prog.rpartition(" ")[2]
            known = [str(each) for each in action.choices]
            meant = did_you_mean(str(value), known) or f"; there is: {', '.join(known)}"
            refuse(f"there is no {f'{before} {value}'!r}{meant}")

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line, and where its help is."""
        sink.write(self.format_usage().rstrip(), stream=sys.stderr)
        refuse(message, self.prog)


def refuse(sentence: str, helped_by: str = "") -> NoReturn:
    """End with a sentence about the command line, and the command whose help says more."""
    sink.write(Styled(f"{PROGRAM}: ", "problem"), sentence, stream=sys.stderr)
    if helped_by:
        arrow = "→" if sink.speaks_unicode(sys.stderr) else "->"
        sink.write("   ", Styled(arrow, "faint"), f" see: {helped_by} --help", stream=sys.stderr)
    sys.exit(USAGE)


def add_commands(
    parser: argparse.ArgumentParser, entries: Sequence[Operation], run: Run, first: Sequence[str] = ()
) -> None:
    """Add the commands to a parser, ours or the one the host made; `first` are those on the first page of help."""
    add_global(parser, is_root=True)
    actions = parser.add_subparsers(
        dest="pgvector_command", metavar="COMMAND", action=Commands, parser_class=Parser, help=argparse.SUPPRESS
    )
    for entry in entries:
        same = [name for name, stands_for in entry.aliases.items() if not stands_for]
        listed: dict[str, Any] = {"help": entry.help} if entry.is_listed else {}
        sub = actions.add_parser(
            entry.name, **listed, description=f"{entry.help[:1].upper()}{entry.help[1:]}.", aliases=same
        )
        _declare(sub, entry, run, examples(parser.prog, entry.examples))
        for name, stands_for in entry.aliases.items():
            if stands_for:
                told = (f"--{key}" if value is True else str(value) for key, value in stands_for.items())
                words = " ".join([entry.name, *told])
                alias = actions.add_parser(name, description=f"The same as `{words}`.")
                _declare(alias, entry, run, None)
                _preset(alias, stands_for)
    _add_help(parser, actions, entries)
    parser.usage = f"{parser.prog} COMMAND [OPTIONS]"
    parser.formatter_class = HelpFormatter
    parser.epilog = _first_page(parser.prog, entries, first)


def examples(program: str, given: Iterable[Example]) -> str | None:
    """Examples as the end of a help text: a command, and what it does."""
    lines = [f"  {program} {line}\n      {meaning}" for line, meaning in given]
    return EXAMPLES_HEAD + "\n".join(lines) if lines else None


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """The name that looks like a mistyped one, or begins like it, as the end of a sentence; empty when none does."""
    import difflib

    names, typed = list(known), given.casefold()
    near = difflib.get_close_matches(typed, names, n=1, cutoff=NEAR_ENOUGH)
    near = near or [name for name in names if len(typed) >= 2 and name.startswith(typed)]
    return f"; did you mean {near[0]}?" if near else ""


def refuse_extra(used: argparse.ArgumentParser, extra: Sequence[str]) -> NoReturn:
    """End with a sentence about arguments that a command does not take."""
    first = extra[0]
    if not first.startswith("-"):
        refuse(f"there is one argument too many: {first!r}", used.prog)
    name = first.partition("=")[0]
    meant = did_you_mean(name, options_of(used))
    refuse(f"there is no option {name}{meant}", "" if meant else used.prog)


def options_of(parser: argparse.ArgumentParser) -> list[str]:
    """The long options that a parser takes."""
    actions = [action for action in parser._actions if not isinstance(action, Former)]
    return [name for action in actions for name in action.option_strings if name.startswith("--")]


def commands_of(parser: argparse.ArgumentParser) -> Commands | None:
    """The commands or actions below a parser."""
    return next((action for action in parser._actions if isinstance(action, Commands)), None)


def all_commands(program: str, entries: Sequence[Operation], room: int = 0) -> str:
    """All commands under their headings."""
    entries = [each for each in entries if each.is_listed]
    width = max(len(each.name) for each in entries) + 2
    lines = [f"usage: {program} COMMAND [OPTIONS]", ""]
    for group in GROUPS:
        lines += [f"{group}:", *_list([each for each in entries if each.group == group], width, room), ""]
    return "\n".join([*lines, f"More of one: {program} COMMAND --help"])


def _first_page(program: str, entries: Sequence[Operation], first: Sequence[str]) -> str:
    """The commands that most people need, on one screen."""
    known = {each.name: each for each in entries}
    shown = [known[name] for name in first if name in known]
    return "\n".join(
        [
            *_list(shown, max((len(each.name) for each in shown), default=0) + 2),
            "",
            "--hermes-home DIR, --json, --color WHEN and --help go with every command.",
            f"All {sum(each.is_listed for each in entries)} commands: {program} help --all",
            f"Start with: {program} up    Look around first: {program} try",
        ]
    )


def _list(entries: Iterable[Operation], width: int, room: int = 0) -> Iterator[str]:
    for each in entries:
        begun = f"    {each.name:<{width}}"
        yield from textwrap.wrap(begun + each.help, room or _room(), subsequent_indent=" " * len(begun))


def _room() -> int:
    return min(HELP_WIDTH, max(60, shutil.get_terminal_size((80, 24)).columns - 2))


def _declare(parser: argparse.ArgumentParser, operation: Operation, run: Run, epilog: str | None) -> None:
    add_global(parser)
    for option in operation.all_options:
        option.add_to(parser)
    for name, instead in FORMER.get(operation.name, {}).items():
        parser.add_argument(name, nargs="?", action=Former, const=instead, help=argparse.SUPPRESS)
    parser.epilog = epilog
    parser.set_defaults(pgvector_run=lambda args: run(operation, args), pgvector_used=parser)


def _preset(parser: argparse.ArgumentParser, values: Mapping[str, Any]) -> None:
    """Take options away that an alias stands for."""
    for action in [each for each in parser._actions if each.dest in values]:
        parser._remove_action(action)
        for group in parser._action_groups:
            group._group_actions = [each for each in group._group_actions if each is not action]
    parser.set_defaults(**values)


def _add_help(parser: argparse.ArgumentParser, actions: Any, entries: Sequence[Operation]) -> None:
    """`help`, `help --all` and `help COMMAND`."""

    def run(args: argparse.Namespace) -> int:
        if args.all or args.words == ["all"]:
            sink.write(all_commands(parser.prog, entries))
            return 0
        used = parser
        for word in args.words:
            below = commands_of(used)
            if below is None or word not in below.parsers:
                meant = did_you_mean(word, below.listed if below else ())
                refuse(f"there is no command {word!r}{meant}", "" if meant else parser.prog)
            used = below.parsers[word]
        used.print_help()
        return 0

    sub = actions.add_parser("help", description="Show the commands, or how one is used.")
    sub.add_argument("words", nargs="*", metavar="COMMAND", help="the command to explain")
    sub.add_argument("--all", action="store_true", help="list every command")
    add_global(sub)
    sub.set_defaults(pgvector_run=run, pgvector_used=sub)


def _synonym(program: str, given: str, known: Mapping[str, Any]) -> str:
    """The command that does what a word of another program means."""
    meant = SYNONYMS.get(given.casefold(), "")
    first = meant.partition(" ")[0]
    return f"; it is: {program} {meant}" if first.startswith("--") or first in known else ""
