"""Every command a page shows can be typed as it stands there, and every command has its place in the pages."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from functools import cache

import pytest
from docs.pages import Page, page, pages, written

from hermes_memory_pgvector import command_line
from hermes_memory_pgvector.config.settings import DECLARATIONS
from hermes_memory_pgvector.terminal import program

PROGRAM = "hermes-pgvector"
GLOBAL = {"--version", "--trace", "--help", "-h"}
FOREIGN = {"--redact", "--no-verify"}
"""Options of hermes."""


@cache
def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog=PROGRAM)
    made.add_argument("--version", action="store_true")
    made.add_argument("--trace", action="store_true")
    command_line.configure(made)
    return made


def below(parent: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The subcommands of a parser, aliases included."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parent._actions:
        if isinstance(action, argparse._SubParsersAction):
            found.update(action._name_parser_map)
    return found


def tree(parent: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command with its subcommands, as the words one types."""
    commands = program.commands_of(parent)
    for name, child in commands.listed.items() if commands else ():
        yield (*path, name)
        yield from tree(child, (*path, name))


def arguments_of(words: list[str]) -> list[str] | None:
    """What follows the program's name; None when start.py does not hand over to it."""
    if words[0] == PROGRAM:
        return words[1:]
    if words[0] == "hermes":
        return words[2:] if words[1:2] == ["pgvector"] else None
    return words[2:] if words[1:2] == ["start.py"] and words[2:] not in ([], ["test"]) else None


@pytest.mark.parametrize("one", written(), ids=lambda one: one.name)
def test_every_command_in_a_shell_block_is_understood(one: Page) -> None:
    for words in one.commands(PROGRAM, "hermes", "python3"):
        arguments = arguments_of(words)
        if arguments is None:
            continue
        try:
            args = parser().parse_args(arguments)
        except SystemExit:
            pytest.fail(f"{one.name}: {shlex.join(words)}")
        if getattr(args, "config_action", None) in ("set", "get", "unset"):
            assert args.name in DECLARATIONS, f"{one.name}: {shlex.join(words)}"
        if getattr(args, "config_action", None) == "set":
            DECLARATIONS[args.name].parse(args.value)


@pytest.mark.parametrize("one", written(), ids=lambda one: one.name)
def test_every_command_within_a_sentence_exists_with_its_options(one: Page) -> None:
    for code in one.codes():
        if not code.startswith(f"{PROGRAM} "):
            continue
        words = [word.strip("'\"…,;:") for word in code.split()[1:]]
        current, options = parser(), set(GLOBAL)
        for word in words:
            if word in below(current):
                current = below(current)[word]
                options |= set(current._option_string_actions)
            elif below(current) and re.fullmatch("[a-z]+", word):
                pytest.fail(f"{one.name}: `{code}`: there is no {word}")
            elif word.startswith("-"):
                assert word in options, f"{one.name}: `{code}`"


def options_of(name: str) -> set[str]:
    """What a command takes, by one of its names."""
    return set(below(parser())[name]._option_string_actions)


# The page on switching names the options of another package.
@pytest.mark.parametrize(
    "one", [each for each in pages() if each.path.name != "switching.md"], ids=lambda one: one.name
)
def test_every_option_within_a_sentence_is_one_of_the_command_that_the_sentence_names(one: Page) -> None:
    every = GLOBAL.union(*map(options_of, below(parser())))
    for sentence in re.split(r"(?<=[.:;])\s+|\n\n|\n- |\n\|", one.prose):
        spans = [code.split() for code in re.findall(r"`([^`]+)`", sentence)]
        named = {word for words in spans for word in words[: 1 + (words[0] == PROGRAM)] if word in below(parser())}
        known = GLOBAL.union(*map(options_of, named)) if named else every
        for words in spans:
            if words[0].startswith("--") and words[0] not in FOREIGN:
                assert words[0] in known, f"{one.name}: `{' '.join(words)}` in: {sentence}"


def test_every_command_is_in_the_reference() -> None:
    text = page("docs/reference/commands.md").text
    for name in below(parser()):
        assert re.search(rf"^    {re.escape(name)}\b|`{re.escape(name)}`|^## {name}$", text, re.MULTILINE), name
    for path in tree(parser()):
        words = " ".join(path)
        assert f"{'#' * (1 + len(path))} {words}\n\n```\nusage: {PROGRAM} {words}" in text, words
    assert all(option in text for option in GLOBAL)


def test_every_command_is_explained_where_it_is_used() -> None:
    shown: set[tuple[str, ...]] = set()
    for one in written():
        lines = [arguments_of(words) or [] for words in one.commands(PROGRAM, "hermes", "python3")]
        lines += [code.split()[1:] for code in one.codes() if code.startswith(f"{PROGRAM} ")]
        shown |= {tuple(words[:length]) for words in lines for length in range(1, len(words) + 1)}
    missing = [" ".join(path) for path in tree(parser()) if path not in shown]
    assert missing == []


def test_the_readme_names_the_commands_of_the_changelog() -> None:
    listed = re.search(r"- Commands: (.+?)\.\n", page("CHANGELOG.md").text, re.DOTALL)
    assert listed is not None
    assert set(re.findall(r"`([a-z-]+)`", listed[1])) == {path[0] for path in tree(parser())}
