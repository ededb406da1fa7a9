"""Chats through one gateway's API server: every session key has a theme of its own, and nothing crosses over."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from testing.hermes_home import HermesHome
from testing.hermes_servers import GATEWAY_KEY, Gateway
from testing.llm_server import Call, Request, Say, ScriptedLLM
from testing.waiting import wait_until


def remember(gateway: Gateway, llm: ScriptedLLM, theme: str, fact: str, **arguments: Any) -> None:
    """Have the model call the memory tool in a chat of that theme."""
    cue = f"Tool call for {theme}: {fact}"
    llm.when(cue, Call("memory", arguments or {"action": "add", "target": "memory", "content": fact}), Say("Done."))
    gateway.chat(cue, theme=theme)
    (request,) = [request for request in llm.about(cue) if request.tool_results]
    assert json.loads(request.tool_results[0])["success"] is True


def ask_with_tool(gateway: Gateway, llm: ScriptedLLM, theme: str, cue: str, call: Call, **chat: Any) -> Any:
    """What the tool told the model in a chat of that theme."""
    llm.when(cue, call, Say("That is what I found."))
    gateway.chat(chat.pop("message", cue), theme=theme, **chat)
    answered = [request for request in llm.about(cue) if request.tool_results]
    return json.loads(answered[-1].tool_results[0])


def contents(result: Any) -> list[str]:
    return [hit["content"] for hit in result["results"]]


def last_request(llm: ScriptedLLM, cue: str) -> Request:
    return llm.about(cue)[-1]


def test_two_session_keys_are_two_themes(gateway: Gateway, gateway_home: HermesHome) -> None:
    said = {
        "marketing": "The spring campaign may spend forty thousand on posters in stations.",
        "trading": "The desk may risk two percent of its capital on any single position.",
    }
    for theme, message in said.items():
        gateway.chat(message, theme=theme)
    stored = gateway_home.stored
    for theme, message in said.items():
        assert len(wait_until(partial(stored.turns, theme, message))) == 1, theme
        wait_until(lambda: len(stored.turns("marketing") + stored.turns("trading")) == 4)
        assert [role for role, _, _ in stored.turns(theme)] == ["user", "assistant"]
        assert stored.themes_of(message) == {theme}
    wait_until(lambda: stored.turns_with_vector("marketing") == 2)


def test_session_keys_are_folded_to_one_spelling(gateway: Gateway, gateway_home: HermesHome) -> None:
    gateway.chat("The observatory opens its dome for visitors on clear Fridays.", theme="  Star GAZERS ")
    wait_until(lambda: len(gateway_home.stored.turns("star gazers")) == 2)


def test_a_streamed_chat_is_stored_like_any_other(gateway: Gateway, gateway_home: HermesHome) -> None:
    message = "Please stream the tide tables of the western harbour to me, all of them."
    body = {"model": "any", "stream": True, "messages": [{"role": "user", "content": message}]}
    headers = {"Authorization": f"Bearer {GATEWAY_KEY}", "X_Hermes_Session_Key": "tides"}
    answer = gateway.request("POST", "/v1/chat/completions", body, **headers)
    assert answer.body.rstrip().endswith("data: [DONE]")
    wait_until(lambda: [role for role, _, _ in gateway_home.stored.turns("tides")] == ["user", "assistant"])


def test_a_messaging_key_is_stored_under_a_pseudonym(gateway: Gateway, gateway_home: HermesHome) -> None:
    message = "My sister wants to know when the choir rehearses for the winter concert."
    gateway.chat(message, theme="agent:main:whatsapp:dm:+49170555123")
    wait_until(lambda: gateway_home.stored.themes_of(message))
    (theme,) = gateway_home.stored.themes_of(message)
    assert theme.startswith("dm-")
    assert "555123" not in theme
    assert "49170555123" not in gateway_home.stored.everything()


def test_add_replace_remove_are_mirrored(gateway: Gateway, gateway_home: HermesHome, llm: ScriptedLLM) -> None:
    stored = gateway_home.stored
    remember(gateway, llm, "ops", "The staging cluster has three nodes")
    wait_until(lambda: stored.memories("ops") == [("memory", "The staging cluster has three nodes")])
    remember(
        gateway, llm, "ops", "four nodes",
        action="replace", target="memory", old_text="staging cluster", content="The staging cluster has four nodes",
    )  # fmt: skip
    wait_until(lambda: stored.memories("ops") == [("memory", "The staging cluster has four nodes")])
    remember(gateway, llm, "ops", "gone", action="remove", target="memory", old_text="staging cluster")
    wait_until(lambda: stored.memories("ops") == [])


def test_a_batch_is_mirrored_in_its_order(gateway: Gateway, gateway_home: HermesHome, llm: ScriptedLLM) -> None:
    operations = [
        {"action": "add", "content": "  The greenhouse is heated to eighteen degrees "},
        {"action": "add", "content": "The greenhouse has a leaking pane"},
        {"action": "replace", "old_text": "eighteen", "content": "The greenhouse is heated to twenty degrees"},
        {"action": "remove", "old_text": "leaking pane"},
    ]
    remember(gateway, llm, "garden", "batch", target="memory", operations=operations)
    expected = [("memory", "The greenhouse is heated to twenty degrees")]
    wait_until(lambda: gateway_home.stored.memories("garden") == expected)


def test_an_add_said_twice_is_one_entry(gateway: Gateway, gateway_home: HermesHome, llm: ScriptedLLM) -> None:
    fact = "The archive keeps its oldest maps in drawer nine"
    remember(gateway, llm, "archive", fact)
    gateway.chat(f"Tool call for archive: {fact}", theme="archive", session="again")
    remember(gateway, llm, "archive", "The archive is closed on Mondays")
    wait_until(lambda: len(gateway_home.stored.memories("archive")) == 2)
    assert ("memory", fact) in gateway_home.stored.memories("archive")


def test_an_entry_that_another_theme_takes_out_of_the_shared_file_is_gone(
    gateway: Gateway, gateway_home: HermesHome, llm: ScriptedLLM
) -> None:
    """The host keeps one MEMORY.md for all themes, so a fact forgotten there must not live on in a row."""
    stored = gateway_home.stored
    fact, correction = "The bakery's sourdough rests for fourteen hours", "The brewery's mash rests for two hours"
    remember(gateway, llm, "bakery", fact)
    wait_until(lambda: stored.memories("bakery") == [("memory", fact)])
    remember(
        gateway, llm, "brewery", correction,
        action="replace", target="memory", old_text="sourdough rests", content=correction,
    )  # fmt: skip
    wait_until(lambda: stored.memories("brewery") == [("memory", correction)])
    gateway.chat("The brewery asks about hops and about the water of the valley.", theme="brewery")
    wait_until(lambda: stored.themes_of(fact) == set())
    assert stored.memories("brewery") == [("memory", correction)]


def test_the_files_of_the_home_are_imported_into_its_own_theme_only(
    gateway: Gateway, gateway_home: HermesHome, seeded_memories: list[str]
) -> None:
    gateway.chat("The sales team would like to know what is known about customers.", theme="sales")
    for entry in seeded_memories:
        assert wait_until(partial(gateway_home.stored.themes_of, entry)) == {"hermes"}


def test_recalled_words_are_in_the_request_of_their_theme_only(
    gateway: Gateway, gateway_home: HermesHome, llm: ScriptedLLM
) -> None:
    said = "The glacier station measures ice thickness with radar every November."
    gateway.chat(said, theme="glaciology")
    wait_until(lambda: gateway_home.stored.turns_with_vector("glaciology") == 2)
    question = "With what does the glacier station measure ice thickness in November?"
    gateway.chat(question, theme="glaciology")
    assert said in last_request(llm, question).recalled
    gateway.chat(question, theme="oceanography")
    assert said not in last_request(llm, question).recalled


def test_a_session_is_not_told_the_same_thing_twice(
    gateway: Gateway, gateway_home: HermesHome, llm: ScriptedLLM
) -> None:
    said = "The puppet theatre repaints its stage curtain every leap year."
    gateway.chat(said, theme="theatre")
    wait_until(lambda: gateway_home.stored.turns_with_vector("theatre") == 2)
    first = "When does the puppet theatre repaint its stage curtain, in which year?"
    second = "So the puppet theatre repaints the stage curtain, and in which year again?"
    gateway.chat(first, theme="theatre", session="curtain")
    gateway.chat(second, theme="theatre", session="curtain")
    user_messages = [message for message in last_request(llm, second).messages if message["role"] == "user"]
    assert sum(str(message["content"]).count(said) for message in user_messages) == 1


def test_recall_memory_answers_inside_a_chat(gateway: Gateway, gateway_home: HermesHome, llm: ScriptedLLM) -> None:
    fact = "The planetarium projector needs a new lamp every two thousand hours"
    remember(gateway, llm, "planetarium", fact)
    wait_until(lambda: gateway_home.stored.memories("planetarium"))
    call = Call("recall_memory", {"query": "planetarium projector lamp hours"})
    result = ask_with_tool(gateway, llm, "planetarium", "Look up the projector lamp for me, please.", call)
    assert result["count"] == 1
    (hit,) = result["results"]
    assert hit["content"] == fact
    assert hit["agent_identity"] == "planetarium"
    assert hit["target"] == "memory"
    elsewhere = ask_with_tool(gateway, llm, "aquarium", "Look up the projector lamp elsewhere.", call)
    assert (elsewhere["results"], elsewhere["count"]) == ([], 0)
    assert elsewhere["note"].startswith("Nothing found in theme 'aquarium'")


def test_recall_conversation_answers_inside_a_chat(
    gateway: Gateway, gateway_home: HermesHome, llm: ScriptedLLM
) -> None:
    said = "The clockmaker oils the town hall clock with sperm whale substitute twice a year."
    gateway.chat(said, theme="clocks")
    wait_until(lambda: len(gateway_home.stored.turns("clocks")) == 2)
    call = Call("recall_conversation", {"query": "clockmaker oils the town hall clock"})
    result = ask_with_tool(gateway, llm, "clocks", "What did I tell you of oiling? Search our talks.", call)
    assert said in contents(result)
    assert {hit["agent_identity"] for hit in result["results"]} == {"clocks"}
    elsewhere = ask_with_tool(gateway, llm, "sundials", "What was I told about it elsewhere, in other talks?", call)
    assert said not in contents(elsewhere)


def test_what_the_model_was_told_wrongly_it_hides_and_the_operator_brings_back(
    gateway: Gateway, gateway_home: HermesHome, llm: ScriptedLLM
) -> None:
    wrong = "The harbour crane may lift ninety tons on windy days, said the new foreman."
    gateway.chat(wrong, theme="cranes")
    wait_until(lambda: len(gateway_home.stored.turns("cranes")) == 2)
    look = Call("recall_conversation", {"query": "harbour crane tons on windy days"})
    found = ask_with_tool(gateway, llm, "cranes", "How many tons may it lift? Search our talks.", look)
    (hit,) = [each for each in found["results"] if each["content"] == wrong]
    hide = Call("retract_memory", {"id": hit["ref"], "reason": "the plate on the crane says forty"})
    done = ask_with_tool(gateway, llm, "cranes", "That was wrong; please take it out of your memory.", hide)
    assert done == {"retracted": hit["ref"]}
    again = ask_with_tool(gateway, llm, "cranes", "Search our talks about it once more.", look)
    assert wrong not in contents(again)
    gateway.chat("How many tons may the harbour crane lift on windy days?", theme="cranes")
    assert wrong not in last_request(llm, "How many tons may the harbour crane lift").recalled
    listed = gateway_home.command("hermes-pgvector", "list", "hidden", "--theme", "cranes")
    assert "the plate on the crane says forty" in " ".join(listed.out.split())
    back = gateway_home.command("hermes-pgvector", "mute", "--undo", hit["ref"], "--execute")
    assert back.code == 0, back
    assert wrong in contents(ask_with_tool(gateway, llm, "cranes", "And now, is it in our talks?", look))


def test_another_theme_is_recalled_only_by_name(gateway: Gateway, gateway_home: HermesHome, llm: ScriptedLLM) -> None:
    fact = "The ferry company sells monthly tickets at pier four"
    remember(gateway, llm, "ferries", fact)
    wait_until(lambda: gateway_home.stored.memories("ferries"))
    query = {"query": "ferry company monthly tickets pier"}
    named = ask_with_tool(
        gateway,
        llm,
        "trains",
        "By name, which tickets are there?",
        Call("recall_memory", {**query, "scope": "ferries"}),
    )
    assert contents(named) == [fact]
    everywhere = ask_with_tool(
        gateway, llm, "trains", "Anywhere, which tickets are there?", Call("recall_memory", {**query, "scope": "all"})
    )
    assert fact in contents(everywhere)


def test_colliding_session_ids_do_not_open_another_theme(
    gateway: Gateway, gateway_home: HermesHome, llm: ScriptedLLM
) -> None:
    """The host derives a session id from the first message alone, so two themes can share one."""
    opening = "Good morning, please give me an overview of the open items in our list."
    secret = "The merger with the northern shipyard is announced on the ninth of May."
    llm.when(opening, Say(secret))
    first = gateway.chat(opening, theme="board")
    wait_until(lambda: len(gateway_home.stored.turns("board")) == 2)
    cue = "Search this session for the northern shipyard merger."
    history = [
        {"role": "user", "content": opening},
        {"role": "assistant", "content": "There are no open items in your list today."},
        {"role": "user", "content": cue},
    ]
    call = Call("recall_conversation", {"query": "northern shipyard merger", "scope": "session"})
    result = ask_with_tool(gateway, llm, "interns", cue, call, message=history)
    other = gateway.chat(history, theme="interns")
    assert other.headers["X-Hermes-Session-Id"] == first.headers["X-Hermes-Session-Id"]
    assert secret not in contents(result)
    own = ask_with_tool(gateway, llm, "board", cue, call, message=history)
    assert secret in contents(own)


def test_the_system_prompt_names_theme_and_tools(gateway: Gateway, llm: ScriptedLLM) -> None:
    cue = "A first question whose system prompt will be read by the test."
    gateway.chat(cue, theme="lexicon")
    request = last_request(llm, cue)
    assert {"recall_memory", "recall_conversation"} <= set(request.tools)
    assert "recall_memory" in request.system
    assert "recall_conversation" in request.system


def test_no_log_line_holds_the_password_or_what_was_said(
    gateway: Gateway, gateway_home: HermesHome, llm: ScriptedLLM
) -> None:
    remember(gateway, llm, "logs", "Zanzibarquux is the code word of the lodge")
    gateway.chat("Plimsollquux is another word that nobody else would ever use.", theme="logs")
    wait_until(lambda: len(gateway_home.stored.turns("logs")) >= 3)
    logs = gateway_home.logs()
    assert logs
    assert gateway_home.password not in logs
    ours = [line for line in logs.splitlines() if "hermes_memory_pgvector" in line]
    assert not [line for line in ours if "quux" in line]
