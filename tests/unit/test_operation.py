"""An operation is declared once: the same options and the same document on the command line and in a request."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from hermes_memory_pgvector.errors import CareError, DatabaseUnavailable, UsageError
from hermes_memory_pgvector.terminal import parse, program
from hermes_memory_pgvector.terminal.fields import aside, column
from hermes_memory_pgvector.terminal.operation import Note, Operation, Option, Page, Plan, answer, command, plain

AT = datetime(2026, 11, 18, 9, 14, 7, 123456, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a list."""

    id: str = column("id")
    at: datetime | None = column("when (UTC)")
    secret: str = aside("not in the JSON")


def lines(subject: list[str], limit: int, since: datetime | None, words: Sequence[str], loud: bool) -> Page:
    if "missing" in words:
        raise CareError("there is no such row")
    if "away" in words:
        raise DatabaseUnavailable("the database is away")
    told = [each.upper() if loud else each for each in subject if since is None]
    return Page([Line(each, AT) for each in told[:limit]], "t7" if len(told) > limit else None)


def remove(subject: list[str], words: Sequence[str], execute: bool) -> Plan:
    found = [each for each in subject if each in words]
    if execute:
        subject[:] = [each for each in subject if each not in words]
    left = (Note("warning", "a copy is left"),) if "kept" in words else ()
    return Plan("remove", "removed", {"rows": len(found)}, executed=execute, left=left)


LIST = Operation(
    "list",
    "list rows",
    (
        Option("--limit", "rows a page", parse.positive, 2),
        Option("--since", "only from then on", parse.moment),
        Option("--loud", "in capitals", is_flag=True),
        Option("--words", "only these", many=True),
        Option("--follow", "for ever", is_flag=True, on_page=False),
    ),
    lambda subject, *, follow, **given: lines(subject, **given),
    (("list", "all rows"),),
)
REMOVE = Operation(
    "remove", "remove rows", (Option("words", "which", many=True, required=True),), remove,
    (("remove a", "remove one"),), changes=True,
)  # fmt: skip


def ask(subject: Any, method: str, name: str, **parameters: Any) -> tuple[int, Any]:
    return answer((LIST, REMOVE), subject, method, name, parameters)


def typed(operation: Operation, *words: str) -> dict[str, Any]:
    parser = program.Parser(prog="hermes-pgvector")
    program.add_commands(parser, [operation], lambda *_: 0)
    return program.given(operation, parser.parse_args([operation.name, *words]))


def test_the_command_line_and_a_request_read_options_alike() -> None:
    given = typed(LIST, "--limit", "1", "--loud", "--words", "a", "--words", "b")
    assert given == {"limit": 1, "since": None, "loud": True, "words": ["a", "b"], "follow": False}
    by_command = plain(LIST.run(["a", "b"], **given))
    by_request = ask(["a", "b"], "GET", "list", limit="1", loud="true", words=["a", "b"])
    assert by_request == (200, by_command)
    assert by_command["rows"] == [{"id": "A", "at": "2026-11-18T09:14:07.123456Z"}]


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"limit": "0"}, "Limit: expected a whole number above 0, not '0'."),
        ({"since": "soon"}, "is not a time"),
        ({"nonsense": "1"}, "List takes no 'nonsense'."),
        ({"follow": "true"}, "List takes no 'follow'."),
        ({"loud": "perhaps"}, "Loud is true or false."),
        ({"words": "x\x00"}, "Words is not a text"),
        ({"words": "\ud800"}, "Words is not a text"),
    ],
)
def test_a_wrong_request_is_answered_with_a_sentence(parameters: dict[str, str], told: str) -> None:
    status, document = ask([], "GET", "list", **parameters)
    assert status == 400
    assert told in document["detail"]


def test_a_wrong_value_on_the_command_line_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        typed(LIST, "--limit", "many")
    assert ended.value.code == 2
    assert "argument --limit: expected a whole number above 0, not 'many'" in capsys.readouterr().err


def test_a_request_that_nothing_answers_has_its_status() -> None:
    assert ask([], "GET", "nothing")[0] == 404
    assert ask([], "GET", "remove", words="a")[0] == 404
    assert ask([], "POST", "list")[0] == 404
    assert ask([], "GET", "list", words="missing")[0] == 404
    assert ask([], "GET", "list", words="away")[0] == 503


def test_a_plan_is_done_only_as_it_was_shown() -> None:
    stored = ["a", "b"]
    status, shown = ask(stored, "POST", "remove", words=["a"])
    assert (status, shown["counts"], shown["executed"], stored) == (200, {"rows": 1}, False, ["a", "b"])
    assert ask(stored, "POST", "remove", words=["a"], execute=True)[0] == 409
    assert stored == ["a", "b"]
    changed, again = ask(stored, "POST", "remove", words=["a", "b"], execute=True, digest=shown["digest"])
    assert (changed, again["counts"], stored) == (409, {"rows": 2}, ["a", "b"])
    status, done = ask(stored, "POST", "remove", words=["a"], execute=True, digest=shown["digest"])
    assert (status, done["executed"], stored) == (200, True, ["b"])


def test_work_that_remains_is_an_exit_code_of_the_answer() -> None:
    assert remove([], ["kept"], execute=True).exit_code == 3
    assert remove([], ["a"], execute=True).exit_code == 0


def test_an_operation_can_be_typed_again() -> None:
    given = typed(LIST, "--limit", "1", "--loud", "--words", "a b")
    assert LIST.typed(given) == ("list", "--limit", "1", "--loud", "--words", "a b")
    assert REMOVE.typed(typed(REMOVE, "x", "y", "--execute")) == ("remove", "x", "y")


def test_a_command_in_json_is_what_somebody_types() -> None:
    assert plain(Note("note", "x", then=command("show", "m12")))["then"] == "hermes-pgvector show m12"


def test_values_are_parsed_or_refused() -> None:
    assert parse.end("2026-05-31") == datetime(2026, 6, 1, tzinfo=UTC)
    assert str(parse.record_name("T34")) == "t34"
    assert parse.record_name("20261116_0712_ab12") is None
    for wrong in ("", "0", "-3", "1e3", "²"):
        with pytest.raises(UsageError):
            parse.positive(wrong)


def test_an_alias_stands_for_options_and_is_not_listed() -> None:
    entry = Operation(
        "list", "list", (Option("what", "which", choices=("turns", "events")),), lines, (("list", "x"),),
        aliases={"history": {"what": "events"}},
    )  # fmt: skip
    parser = program.Parser(prog="hermes-pgvector")
    program.add_commands(parser, [entry], lambda *_: 0)
    assert parser.parse_args(["history"]).what == "events"
    below = program.commands_of(parser)
    assert below is not None
    assert list(below.listed) == ["list"]
    assert isinstance(parser, argparse.ArgumentParser)
