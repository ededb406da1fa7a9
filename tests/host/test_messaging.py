"""A messaging chat through the real gateway: its own runner, its own store, a scripted language model."""

from __future__ import annotations

import json

import pytest

from testing.hermes import MakeHome
from testing.hermes_home import HermesHome

DRIVER = """
import asyncio, json, os, sys
from gateway.config import Platform, load_gateway_config
from gateway.platforms.base import MessageEvent
from gateway.run import GatewayRunner
from gateway.session import SessionSource
chats = json.loads(sys.argv[1])
async def talk():
    runner = GatewayRunner(load_gateway_config())
    replies = []
    for person, text in chats:
        source = SessionSource(platform=Platform.TELEGRAM, chat_id=person, user_id=person, chat_type="dm")
        reply = await runner._handle_message(MessageEvent(text=text, source=source))
        replies.append(str(reply))
        for agent in list(getattr(runner, "_agent_cache", {}).values()):
            agent = agent[0] if isinstance(agent, tuple) else agent
            if getattr(agent, "_memory_manager", None) is not None:
                agent._memory_manager.flush_pending(timeout=30)
    return replies
replies = asyncio.run(talk())
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.runtime.registry import close_all
close_all(Deadline.after(20))
sys.stdout.write("\\n" + json.dumps(replies) + "\\n")
sys.stdout.flush()
os._exit(0)
"""
ADA, BEA = "4915100000001", "4915100000002"


def question(number: int) -> str:
    return f"Question {number}: how many barrels of cider are there in cellar number {number} of the old mill?"


CHATS = [
    (ADA, question(1)), (ADA, question(2)), (BEA, question(2)), (ADA, "/undo"), (ADA, question(3)),
    (BEA, question(4)), (BEA, "/undo"),
]  # fmt: skip


@pytest.fixture(scope="module")
def home(make_home: MakeHome) -> HermesHome:
    """A home whose gateway has had two chats: it serves anybody and does not ask before an undo."""
    made = make_home(
        sections={"approvals": {"destructive_slash_confirm": False}}, environment={"GATEWAY_ALLOW_ALL_USERS": "true"}
    )
    replies: list[str] = made.python(DRIVER, json.dumps(CHATS))
    for (_, text), reply in zip(CHATS, replies, strict=True):
        assert ("Undid 1 turn(s)" in reply) == (text == "/undo"), reply
    return made


def recalled(home: HermesHome, person: str) -> str:
    """What is recalled in the theme of a person, whom the first words tell."""
    first = {ADA: question(1), BEA: question(4)}[person]
    ((theme,),) = home.stored.rows("SELECT DISTINCT agent_identity FROM conversations WHERE content = %s", first)
    done = home.command("hermes-pgvector", "recall", "barrels of cider in cellar number", "--theme", theme, "--json")
    assert done.code == 0, done
    return done.out


def test_each_person_of_a_messaging_platform_has_a_theme_that_does_not_show_the_number(home: HermesHome) -> None:
    assert len(home.stored.themes()) == 2
    everything = home.stored.everything()
    assert ADA not in everything
    assert BEA not in everything


def test_what_nobody_undid_in_a_messaging_chat_is_recalled(home: HermesHome) -> None:
    found = recalled(home, ADA)
    assert "cellar number 1" in found
    assert "cellar number 3" in found
    assert "cellar number 4" not in found


def test_what_was_undone_in_a_messaging_chat_is_recalled_no_more(home: HermesHome) -> None:
    assert "cellar number 2" not in recalled(home, ADA)


def test_an_undo_as_the_last_act_of_a_messaging_chat_counts(home: HermesHome) -> None:
    found = recalled(home, BEA)
    assert "cellar number 4" not in found
    assert "cellar number 2" in found, "another chat's undo is none of this one"
