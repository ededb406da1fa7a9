"""The memory page as an operator uses it, in the real hermes dashboard and on its own."""

from __future__ import annotations

import json
import re
import time
from typing import Any
from urllib.parse import urlencode

import pytest
from browser.conftest import AXE, Fleet, Tab
from playwright.sync_api import Locator, Page, expect

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.known_models import LOCAL_MODEL
from hermes_memory_pgvector.journal import Urgency
from hermes_memory_pgvector.runtime.registry import close_all, engine_for
from hermes_memory_pgvector.store import hidden
from hermes_memory_pgvector.values import AddMemory, Moment
from testing.made_up_fleet import NOTICED, POISON, POISONED, hide_noticed

MEANT = "money spent on election advertising"
"""Shares no word with the memory it is after."""


mostly_alone = pytest.mark.parametrize("tab", ["ui", pytest.param("dashboard", marks=pytest.mark.large)], indirect=True)
"""For what is the same in both places."""


def row_with(page: Page, text: str) -> Locator:
    return page.locator(".pgv-row", has_text=text)


def test_the_fleet_is_listed_with_its_growth_and_its_health(tab: Tab) -> None:
    page = tab.open()
    for theme in ("marketing", "support", "research"):
        expect(page.get_by_role("link", name=theme, exact=True)).to_be_visible()
    line = page.get_by_role("row", name="marketing")
    expect(line.get_by_role("img")).to_have_attribute("aria-label", re.compile(r"^\+\d+ rows in 14 days$"))
    expect(page.get_by_role("row", name="dm-4c1f09")).to_contain_text("private")
    expect(page.locator(".pgv-chart")).to_have_count(3)
    strip = page.get_by_label("Health")
    expect(strip).to_contain_text("Everything works")
    strip.get_by_role("button", name="Show all parts").click()
    for part in ("database", "embedder", "journal", "vectors", "dead letters"):
        expect(strip).to_contain_text(part)
    page.get_by_label("Find a theme").fill("mark")
    expect(page.get_by_role("link", name="support", exact=True)).to_have_count(0)
    expect(page.get_by_role("link", name="marketing", exact=True)).to_be_visible()


def test_a_memory_and_a_turn_are_found_by_meaning_and_the_page_says_why(tab: Tab) -> None:
    page = tab.open()
    page.get_by_label("Search memories and turns").fill(MEANT)
    page.keyboard.press("Enter")
    hit = page.locator(".pgv-hit", has_text="budget of 12,000 euros").first
    hit.get_by_role("button", name="Why this hit").click()
    why = hit.locator(".pgv-why")
    expect(why).to_contain_text("nearer than unrelated texts, similarity 0.")
    expect(why).to_contain_text(f"by {LOCAL_MODEL}")
    expect(why).to_contain_text("A hit needs")
    expect(why.get_by_role("row", name="money")).to_be_visible()
    turn = page.locator(".pgv-hit", has=page.get_by_role("link", name="Open the session")).first
    expect(turn).to_contain_text("campaign budget")
    expect(turn).to_contain_text("words 0 %")


@mostly_alone
def test_words_that_were_searched_for_are_marked_and_a_turn_leads_to_its_session(tab: Tab) -> None:
    page = tab.open("view=search&q=winch+of+the+pilot+boat&theme=workshop&what=turns")
    hit = page.locator(".pgv-hit").first
    expect(hit.locator("mark").first).to_have_text("winch")
    hit.get_by_role("link", name="Open the session").click()
    expect(page.locator(".pgv-transcript .pgv-row-linked")).to_contain_text("winch")
    expect(page.locator(".pgv-said").first).to_contain_text("user")


@mostly_alone
def test_what_is_not_there_is_explained(tab: Tab) -> None:
    page = tab.open("view=search&q=zzyzx&theme=marketing&what=turns&role=tool")
    expect(page.locator(".pgv-empty")).to_contain_text("Nothing found")
    expect(page.get_by_role("link", name="Search all themes")).to_be_visible()


def test_a_memory_is_forgotten_after_confirmation_and_put_back(tab: Tab, fleet: Fleet) -> None:
    text = "Newsletters go out on Tuesday mornings"
    page = tab.open("view=theme&theme=marketing")
    row_with(page, text).get_by_role("button", name="Forget…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Goes: 1 memory")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(row_with(page, text)).to_be_visible()
    row_with(page, text).get_by_role("button", name="Forget…").click()
    dialog.get_by_role("button", name="Take it out").click()
    expect(page.locator(".pgv-done")).to_contain_text("Forgotten: 1 memory taken out.")
    expect(row_with(page, text)).to_have_count(0)
    page.locator(".pgv-done").get_by_role("button", name="Undo").click()
    expect(dialog).to_contain_text("Comes back: 1 memory")
    dialog.get_by_role("button", name="Undo it").click()
    expect(page.locator(".pgv-done")).to_contain_text("Undone")
    expect(row_with(page, text)).to_be_visible()


@mostly_alone
def test_a_theme_that_is_forgotten_under_an_open_page_is_gone_from_it(tab: Tab, fleet: Fleet) -> None:
    name = "short\u202elived \u200b"
    engine, _ = engine_for(fleet.home)
    now = time.time_ns() // 1000
    items = [AddMemory(name, "memory", f"Something for {each}", Moment(now, now + each), "home") for each in (1, 2)]
    engine.record(items, Urgency.TURN)
    assert engine.flush(Deadline.after(30))
    close_all(Deadline.after(10))
    page = tab.open(urlencode({"view": "theme", "theme": name}))
    expect(row_with(page, "Something for 2")).to_be_visible()
    other = page.context.new_page()
    other.goto(f"{tab.address}#{urlencode({'view': 'theme', 'theme': name})}")
    other.get_by_role("button", name="Forget the theme…").click()
    dialog = other.get_by_role("dialog")
    expect(dialog).to_contain_text("This erases 2 memories")
    row_with(page, "Something for 2").get_by_role("button", name="Forget…").click()
    page.get_by_role("dialog").get_by_role("button", name="Take it out").click()
    expect(page.locator(".pgv-done")).to_contain_text("Forgotten")
    # What is shown is spelled out, and can be typed that way.
    dialog.get_by_role("textbox").fill("shortU+202Elived U+200B")
    dialog.get_by_role("button", name="Erase for good").click()
    expect(dialog).to_contain_text("This erases 1 memory")
    dialog.get_by_role("button", name="Erase for good").click()
    for each in (other, page):
        expect(each.locator(".pgv-empty")).to_contain_text("Nothing is left of this theme", timeout=30_000)
        expect(each.locator(".pgv-facts")).to_have_count(0)
    other.close()
    # The browser itself notes an answer that was an error; the page says it in words.
    tab.complaints[:] = [each for each in tab.complaints if "status of 404" not in each]


def test_a_poisoned_memory_is_inert_and_is_erased_for_good(tab: Tab) -> None:
    page = tab.open("view=theme&theme=support")
    expect(page.locator(".pgv-rows")).to_contain_text("<script>fetch(")
    expect(page.locator(".pgv-hidden-sign").first).to_have_text("U+202E")
    assert page.locator(".pgv-root script, .pgv-root img, .pgv-root iframe").count() == 0
    page.goto(f"{tab.address}#view=search&q=collector+example+price+list&theme=support")
    expect(page.locator(".pgv-hits").first).to_contain_text("collector.example")
    page.goto(f"{tab.address}#view=theme&theme=support")
    page.get_by_label("Origin").select_option("untrusted")
    expect(row_with(page, "Refunds above 200 euros")).to_have_count(0)
    expect(row_with(page, "collector.example").first).to_contain_text("untrusted")
    own = POISON[0 if "memory" in tab.address else 2]
    page.goto(f"{tab.address}#view=theme&theme=support")
    row_with(page, own[:30]).get_by_role("button", name="Forget…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Erase it for good").check()
    expect(dialog).to_contain_text("This erases 1 memory")
    dialog.get_by_role("button", name="Erase for good").click()
    expect(page.locator(".pgv-done")).to_contain_text("Receipt", timeout=30_000)
    expect(row_with(page, own[:30])).to_have_count(0)


def test_the_page_survives_a_database_that_goes_away_and_comes_back(tab: Tab, fleet: Fleet) -> None:
    page = tab.open()
    expect(page.get_by_role("link", name="marketing", exact=True)).to_be_visible()
    fleet.proxy.mode = "refuse"
    strip = page.get_by_label("Health")
    expect(strip).to_contain_text("Problem", timeout=20_000)
    expect(strip).to_contain_text("kept in the journal")
    expect(strip.locator("code")).to_contain_text("hermes-pgvector doctor")
    expect(page.get_by_role("link", name="marketing", exact=True)).to_be_visible()
    page.evaluate("location.hash = 'view=theme&theme=support'")
    expect(page.get_by_role("alert").first).to_contain_text("could not be read")
    fleet.proxy.mode = "pass"
    expect(strip).to_contain_text("Everything works", timeout=20_000)
    expect(page.locator(".pgv-facts")).to_contain_text("Memories", timeout=20_000)
    # The browser itself notes an answer that was an error; the page says it in words.
    tab.complaints[:] = [each for each in tab.complaints if "status of 503" not in each]


@mostly_alone
def test_hidden_rows_are_listed_and_brought_back_after_confirmation(tab: Tab, fleet: Fleet) -> None:
    engine, _ = engine_for(fleet.home)
    with engine.pool.transaction(Deadline.after(10)) as connection:
        if not hidden.listed(connection, theme=POISONED):
            hide_noticed(connection, fleet.home)
    close_all(Deadline.after(10))
    page = tab.open("view=theme&theme=support&tab=hidden")
    expect(page.locator(".pgv-row", has_text=NOTICED[0])).to_be_visible()
    page = tab.open("view=theme&theme=support&tab=memories")
    row = page.locator(".pgv-row").first
    row.get_by_role("button", name="Hide…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Recall no longer finds 1 memory.")
    dialog.get_by_role("button", name="Hide it").click()
    expect(page.locator(".pgv-done")).to_contain_text("is hidden")
    row.get_by_role("button", name="Bring back…").click()
    dialog.get_by_role("button", name="Bring it back").click()
    expect(page.locator(".pgv-done")).to_contain_text("again")


@mostly_alone
def test_the_charts_stand_in_one_row_where_there_is_room(tab: Tab) -> None:
    page = tab.open()
    page.wait_for_selector(".pgv-chart")
    places = "[...document.querySelectorAll('.pgv-chart')].map(each => Math.round(each.getBoundingClientRect().top))"
    assert len(set(page.evaluate(places))) == 1
    page.set_viewport_size({"width": 400, "height": 800})
    assert len(set(page.evaluate(places))) == 3


@mostly_alone
def test_delegations_are_a_graph_that_leads_to_sessions(tab: Tab) -> None:
    page = tab.open("view=theme&theme=research&tab=delegations")
    node = page.get_by_role("link", name="-1-sub2, worked for").first
    node.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".pgv-pairs")).to_contain_text("Worked for")
    expect(page.locator(".pgv-pairs")).to_contain_text("Gave work to")


@mostly_alone
def test_history_is_shown_and_an_event_can_be_undone(tab: Tab) -> None:
    page = tab.open("view=theme&theme=workshop&tab=history")
    event = page.locator(".pgv-event", has_text="changed").last
    expect(event).to_contain_text("The lathe needs new bearings")
    event.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("dialog")).to_contain_text("Comes back: 1 memory")
    page.get_by_role("button", name="Leave it").click()


@mostly_alone
def test_the_setup_shows_every_check(tab: Tab) -> None:
    page = tab.open("view=setup")
    expect(page.locator(".pgv-check", has_text="plugin folder")).to_be_visible(timeout=30_000)


VIEWS = {
    "fleet": "",
    "search": f"view=search&q={MEANT.replace(' ', '+')}",
    "theme": "view=theme&theme=support",
    "session": "view=theme&theme=research&tab=delegations",
    "hidden": "view=theme&theme=support&tab=hidden",
    "setup": "view=setup",
}


def serious(page: Page) -> list[tuple[str, Any]]:
    """What axe-core finds that keeps people out."""
    page.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")
    found = page.evaluate("axe.run('.pgv-root').then(result => JSON.stringify(result.violations))")
    return [
        (each["id"], [node["target"] for node in each["nodes"]][:3])
        for each in json.loads(found)
        if each["impact"] in ("serious", "critical")
    ]


def test_nobody_is_kept_out(tab: Tab) -> None:
    # The views are the same in both places; around them only the host's colours and parts differ.
    for place in VIEWS.values() if "memory" not in tab.address else (VIEWS["search"],):
        page = tab.open(place)
        page.wait_for_selector(".pgv-fleet, .pgv-hit, .pgv-row, .pgv-batch, .pgv-graph, .pgv-check-text")
        for button in page.get_by_role("button", name="Why this hit").all()[:1]:
            button.click()
        assert serious(page) == [], place
    page = tab.open(VIEWS["theme"])
    page.get_by_role("button", name="Forget…").first.click()
    page.wait_for_selector(".pgv-plan")
    assert serious(page) == []


@mostly_alone
def test_everything_fits_a_small_screen(tab: Tab) -> None:
    tab.page.set_viewport_size({"width": 400, "height": 800})
    for place in VIEWS.values():
        page = tab.open(place)
        page.wait_for_selector(".pgv-fleet, .pgv-hit, .pgv-row, .pgv-batch, .pgv-graph, .pgv-check-text")
        wide = page.evaluate(
            "[...document.querySelectorAll('.pgv-root *')].filter(each => !each.closest('.pgv-scroll, svg, dialog')"
            " && each.getBoundingClientRect().right > innerWidth + 1).map(each => each.className)"
        )
        assert wide == [], place


@mostly_alone
def test_the_keyboard_is_enough(tab: Tab) -> None:
    page = tab.open()
    expect(page.get_by_role("link", name="marketing", exact=True)).to_be_visible()
    page.get_by_role("link", name="marketing", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator(".pgv-row").first).to_be_visible()
    assert page.evaluate("document.activeElement.className") == "pgv-main"
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="All themes")).to_be_focused()
    page.go_back()
    expect(page.locator(".pgv-fleet")).to_be_visible()
