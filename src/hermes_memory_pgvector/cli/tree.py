"""The command tree: how a command declares itself, and what its help and its usage errors look like.

A command is a module of `cli/`, listed in `cli/__init__.py`, with

    NAME = "recall"                          the word on the command line
    HELP = "search memories and past turns"  one line without a full stop
    GROUP = "see"                            the heading it stands under in `--help`: one of GROUPS
    EXAMPLES = (("recall 'when do we ship'", "ask as an agent would"), …)   without the program's name; at least one
    ALIASES = ("…",)                         optional
    def configure(parser): options.add_common(parser); …     --hermes-home, --json, --color
    def run(args) -> int: …                                  the exit code

A command with actions of its own (`config set`) declares them with `actions_of(parser)` and `add_action(…)`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any, Final, NoReturn

Example = tuple[str, str]
GROUPS: Final = ("set up", "see", "correct", "erase", "move", "run")
USAGE = 2
HELP_WIDTH = 100
EXAMPLES_HEAD = "examples:\n"
NEAR_ENOUGH = 0.6
NEARLY_AS_NEAR = 0.15


class HelpFormatter(argparse.HelpFormatter):
    """Help that fits the terminal; the lines of examples and of the list of commands stay as they are."""

    def __init__(self, prog: str, width: int | None = None) -> None:
        width = width or min(HELP_WIDTH, max(60, shutil.get_terminal_size((80, 24)).columns - 2))
        super().__init__(prog, max_help_position=26, width=width)

    def add_argument(self, action: argparse.Action) -> None:
        """Leave room for the names of commands, which stand further in than argparse reckons with."""
        super().add_argument(action)
        if isinstance(action, Commands) and action.help is not argparse.SUPPRESS:
            inset = self._current_indent + 2 * self._indent_increment
            longest = max(map(len, action.helps), default=0) + inset
            self._action_max_length = max(self._action_max_length, longest)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" not in text:
            return super()._fill_text(text, width, indent)
        return "\n".join(line for given in text.splitlines() for line in _hanging(given, width, indent)) + "\n"


class Commands(argparse._SubParsersAction):  # type: ignore[type-arg]
    """A choice of commands that answers a mistyped one with those that look like it."""

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
            meant = did_you_mean(given, known) or f"; see: {parser.prog} --help"
            raise argparse.ArgumentError(None, f"there is no command {given!r}{meant}")
        super().__call__(parser, namespace, values, option_string)

    @property
    def parsers(self) -> dict[str, argparse.ArgumentParser]:
        """The commands' parsers by name."""
        return dict(self._name_parser_map)

    @property
    def helps(self) -> dict[str, str]:
        """One line for each command, without aliases."""
        return {str(each.dest): str(each.help or "") for each in self._choices_actions}


class Parser(argparse.ArgumentParser):
    """A parser of ours: examples below its help, one sentence for a mistake."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", HelpFormatter)
        super().__init__(**kwargs)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line, and where its help is."""
        from hermes_memory_pgvector.setup import terminal

        if "did you mean" not in message:
            terminal.complain(self.format_usage().rstrip())
        terminal.fail(message, "" if "see: " in message else f"see: {self.prog} --help")
        sys.exit(USAGE)


def add_commands(parser: argparse.ArgumentParser, commands: Iterable[ModuleType]) -> None:
    """Add the commands to a parser: ours, or the one the host made for `hermes pgvector`."""
    listed = list(commands)
    actions = parser.add_subparsers(
        dest="pgvector_command", metavar="COMMAND", action=Commands, parser_class=Parser, help=argparse.SUPPRESS
    )
    for command in listed:
        sub = actions.add_parser(
            command.NAME,
            help=command.HELP,
            description=command.HELP[:1].upper() + command.HELP[1:] + ".",
            aliases=getattr(command, "ALIASES", ()),
        )
        command.configure(sub)
        sub.epilog = examples(parser.prog, getattr(command, "EXAMPLES", ()))
        sub.set_defaults(pgvector_run=command.run, pgvector_used=sub)
    parser.usage = f"{parser.prog} COMMAND [OPTIONS]"
    parser.formatter_class = HelpFormatter
    parser.epilog = _overview(parser.prog, listed)


def actions_of(parser: argparse.ArgumentParser, dest: str) -> Commands:
    """The actions of a command, such as `config set`; without one, its help is shown."""
    parser.set_defaults(**{f"{dest}_parser": parser})
    actions: Commands = parser.add_subparsers(  # type: ignore[assignment]
        dest=dest, metavar="ACTION", action=Commands, parser_class=Parser, title="actions"
    )
    return actions


def add_action(
    actions: Commands,
    name: str,
    summary: str,
    declare: Callable[[argparse.ArgumentParser], None] | None = None,
    *,
    example: Example | None = None,
) -> argparse.ArgumentParser:
    """Declare one action with its help and an example."""
    sub: argparse.ArgumentParser = actions.add_parser(
        name, help=summary, description=summary[:1].upper() + summary[1:] + "."
    )
    if declare is not None:
        declare(sub)
    if example is not None:
        command = example[0].split(" ", 1)[0]
        sub.epilog = examples(sub.prog.partition(f" {command} ")[0], [example])
    sub.set_defaults(pgvector_used=sub)
    return sub


def examples(program: str, given: Iterable[Example]) -> str | None:
    """Examples as the end of a help text: a command, and what it does."""
    lines = [f"  {program} {line}\n      {meaning}" for line, meaning in given]
    return EXAMPLES_HEAD + "\n".join(lines) if lines else None


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """The names that look like a mistyped one, as the end of a sentence; empty when none does."""
    near = look_alikes(given, known)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def look_alikes(given: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The names that look like a mistyped one, the nearest first."""
    import difflib

    names = list(known)
    folded = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(given.casefold(), folded, n=most, cutoff=NEAR_ENOUGH)
    likeness = [difflib.SequenceMatcher(None, given.casefold(), name).ratio() for name in near]
    near = [name for name, like in zip(near, likeness, strict=True) if like > likeness[0] - NEARLY_AS_NEAR]
    begun = [name for name in folded if not near and len(given) >= 2 and name.startswith(given.casefold())]
    return [folded[name] for name in [*near, *begun]][:most]


def unknown_options(used: argparse.ArgumentParser, extra: Sequence[str]) -> str:
    """A sentence about arguments that a command does not take."""
    first = extra[0]
    if not first.startswith("-"):
        return f"there is one argument too many: {first!r}"
    name = first.partition("=")[0]
    return f"there is no option {name}{did_you_mean(name, options_of(used))}"


def options_of(parser: argparse.ArgumentParser) -> list[str]:
    """The long options of a parser."""
    return [name for action in parser._actions for name in action.option_strings if name.startswith("--")]


def commands_of(parser: argparse.ArgumentParser) -> Commands | None:
    """The commands or actions below a parser."""
    return next((action for action in parser._actions if isinstance(action, Commands)), None)


def _hanging(line: str, width: int, indent: str) -> list[str]:
    """A line of a list, wrapped so that its second column stays one."""
    found = re.match(r" +\S+(?: \([^)]*\))? {2,}", line)
    if found is None or len(line) <= width:
        return [indent + line]
    return textwrap.wrap(line, width, initial_indent=indent, subsequent_indent=indent + " " * found.end())


def _overview(program: str, commands: list[ModuleType]) -> str:
    """All commands under their headings."""
    width = max(len(_names(command)) for command in commands) + 2
    lines = [
        line
        for group in GROUPS
        for line in _group(group, [command for command in commands if getattr(command, "GROUP", "run") == group], width)
    ]
    return "\n".join([*lines, f"Start with: {program} up      Look around first: {program} try"])


def _group(group: str, commands: list[ModuleType], width: int) -> Iterator[str]:
    if commands:
        yield f"{group}:"
        yield from (f"    {_names(command):<{width}}{command.HELP}" for command in commands)
        yield ""


def _names(command: ModuleType) -> str:
    aliases = getattr(command, "ALIASES", ())
    return f"{command.NAME} ({', '.join(aliases)})" if aliases else str(command.NAME)
