"""Words in every dress, through the whole product: what is masked is not stored, and what is forgotten is gone."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo
from unit.test_dressed_secrets import ALNUM, dressings, token

from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from testing.agent import AgentHome
from testing.command import Commands, Finished, with_password
from testing.postgres import Database

NAME = "Anna Schmidt"
# How a name comes back from mails, tables and terminals.
WRITTEN = {
    "two blanks": "Anna  Schmidt",
    "a line break": "Anna\nSchmidt",
    "a Windows line break": "Anna\r\nSchmidt",
    "a tab": "Anna\tSchmidt",
    "a no-break space": "Anna\u00a0Schmidt",
    "a narrow no-break space": "Anna\u202fSchmidt",
    "an unseen sign between": "Anna \u200bSchmidt",
    "an unseen sign within": "An\u200bna Schmidt",
    "a soft hyphen within": "Anna Schm\u00adidt",
    "a variation sign within": "Anna\ufe0f Schmidt",
    "a blank of Braille": "Anna\u2800Schmidt",
    "bold": "**Anna** Schmidt",
    "bold within": "Anna Schm**idt**",
    "a colour": "Anna \x1b[1mSchmidt\x1b[0m",
    "a URL": "Anna%20Schm%69dt",
    "HTML": "Anna&nbsp;Schmidt",
    "another width": "Ａｎｎａ　Ｓｃｈｍｉｄｔ",
    "look-alike letters": "\u0410nna S\u0441hmidt",
    "hyphenation": "Anna Schm-\nidt",
    "hyphenation on Windows": "Anna Schm-\r\nidt",
    "a soft line end of a mail": "Anna Schm=\nidt",
    "a line break of HTML": "Anna<br>Schmidt",
    "a cursor": "Anna\x1b[1CSchmidt",
    "a quoted mail": "> Anna\n> Schmidt",
    "a query": "q=Anna+Schmidt",
    "emphasis": "_Anna_ Schmidt",
    "entities": "&#65;nna Schm&#x69;dt",
    "UTF-8 in octal": "Anna\\302\\240Schmidt",
    "JSON": 'the name is "Anna\\u0020Schm\\u0069dt"',
}
IN_CI = ("a line break", "bold within", "look-alike letters", "hyphenation", "a query", "JSON")


def say(home: AgentHome, *texts: str) -> None:
    speaker: PgvectorMemoryProvider = home.provider("marketing", "s1")
    for number, text in enumerate(texts):
        speaker.sync_turn(text, f"Noted as number {number}.", session_id="s1")
    home.settle()


def words(home: AgentHome) -> list[str]:
    return [content for role, _, content in home.stored.turns("marketing") if role == "user"]


def test_a_dressed_token_is_stored_nowhere(agent_home: AgentHome) -> None:
    secret = token("ghp_", ALNUM, 36)
    texts = dressings(secret)[::4]
    say(agent_home, *texts)
    agent_home.provider("marketing", "s1").on_memory_write("add", "memory", f"q=token%20{secret}%20now")
    agent_home.settle()
    assert len(words(agent_home)) > len(texts) / 2, "some look alike without the token"
    assert secret[4:] not in agent_home.stored.everything()


@pytest.fixture
def commands(agent_home: AgentHome, database: Database, tmp_path: Path) -> Commands:
    """The commands of the home in which the agent speaks."""
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password])
    made.configure(dsn=make_conninfo(runtime), **agent_home.settings)
    agent_home.path = made.home
    (made.home / "memories").mkdir(exist_ok=True)
    return made


def done(finished: Finished) -> Finished:
    assert finished.code == 0, finished.everything
    return finished


def test_forgetting_a_name_takes_it_in_any_case_and_leaves_other_names(
    agent_home: AgentHome, commands: Commands
) -> None:
    say(agent_home, f"Call {NAME.upper()} back about the flat", "Anna Schmid and Hannah Schmitt are others")
    agent_home.close()
    done(commands.call("forget", "--match", NAME, "--execute"))
    assert words(agent_home) == ["Anna Schmid and Hannah Schmitt are others"]


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(
            text,
            id=name,
            marks=[] if name in IN_CI else [pytest.mark.large],
        )
        for name, text in WRITTEN.items()
    ],
)
def test_forgetting_a_name_takes_it_however_it_is_written(
    agent_home: AgentHome, commands: Commands, written: str
) -> None:
    say(agent_home, f"Call {written} back about the flat", "The flat has three rooms and a balcony")
    agent_home.close()
    done(commands.call("forget", "--match", NAME, "--execute"))
    assert words(agent_home) == ["The flat has three rooms and a balcony"]


def test_forgetting_a_row_that_is_not_there_is_an_error_and_leaves_no_receipt(
    agent_home: AgentHome, commands: Commands
) -> None:
    say(agent_home, "The flat has three rooms and a balcony")
    agent_home.close()
    done = commands.call("forget", "m999999", "--execute")
    assert done.code == 1
    assert "m999999" in done.err
    assert len(words(agent_home)) == 1
