"""The memory page as an operator uses it, in the real hermes dashboard and on its own."""

from __future__ import annotations

import json
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
from hermes_memory_pgvector.values import AddMemory, Moment
from testing.made_up_fleet import NOTICED_SESSION, POISON

MEANT = "money spent on election advertising"
"""Shares no word with the memory it is after."""
mostly_alone = pytest.mark.parametrize("tab", ["ui", pytest.param("dashboard", marks=pytest.mark.large)], indirect=True)
"""For what is the same in both places."""
READY = ".pgv-row, .pgv-said, .pgv-empty"


def row_with(page: Page, text: str) -> Locator:
    return page.locator(".pgv-row", has_text=text).first


def write(fleet: Fleet, theme: str, *contents: str) -> None:
    """Memories that a test changes, so that no other minds."""
    engine, _ = engine_for(fleet.home)
    now = time.time_ns() // 1000
    engine.record(
        [AddMemory(theme, "memory", each, Moment(now, now + place), "home") for place, each in enumerate(contents)],
        Urgency.TURN,
    )
    assert engine.flush(Deadline.after(30))
    close_all(Deadline.after(10))


def test_the_first_screen_shows_memories_conversations_and_themes(tab: Tab) -> None:
    page = tab.open()
    expect(page.get_by_label("Health")).to_contain_text("All works; some rows want a look")
    page.get_by_label("Health").get_by_role("link", name="from turns that read a stranger's text").click()
    expect(page.locator(".pgv-row").first).to_contain_text("! untrusted")
    page.go_back()
    expect(page.locator(".pgv-row").first).to_be_visible()
    expect(page.get_by_role("heading", name="Latest conversations")).to_be_visible()
    expect(page.locator(".pgv-chart")).to_have_count(1)
    for theme in ("marketing", "support", "research"):
        expect(page.locator(".pgv-themes").get_by_role("link", name=theme, exact=True)).to_be_visible()
    expect(page.get_by_role("row", name="dm-4c1f09")).to_contain_text("private")


@mostly_alone
def test_the_first_memory_is_on_the_first_screen_of_a_phone(tab: Tab) -> None:
    tab.page.set_viewport_size({"width": 400, "height": 860})
    page = tab.open()
    page.wait_for_selector(".pgv-row .pgv-text")
    bottom = page.evaluate("document.querySelector('.pgv-row .pgv-text').getBoundingClientRect().bottom")
    assert bottom < 860


def test_a_memory_is_found_by_meaning_and_the_page_says_why(tab: Tab) -> None:
    page = tab.open()
    page.keyboard.press("/")
    page.keyboard.type(MEANT)
    page.keyboard.press("Enter")
    hit = row_with(page, "budget of 12,000 euros")
    hit.get_by_role("button", name="Why this hit").click()
    expect(hit.locator(".pgv-why")).to_contain_text(f"by {LOCAL_MODEL}")
    expect(hit.locator(".pgv-why")).to_contain_text("It shares no word with the question.")


@mostly_alone
def test_a_turn_leads_to_its_conversation(tab: Tab) -> None:
    page = tab.open("view=search&q=winch+of+the+pilot+boat&theme=workshop")
    page.get_by_role("link", name="Open the conversation").first.click()
    expect(page.locator(".pgv-transcript .pgv-row-linked")).to_contain_text("winch")


@mostly_alone
def test_what_is_not_there_is_explained(tab: Tab) -> None:
    page = tab.open("view=search&q=zzyzx&theme=marketing")
    expect(page.locator(".pgv-empty")).to_contain_text("Nothing is found")
    expect(page.get_by_role("link", name="Search all themes")).to_be_visible()


def test_a_reload_and_a_second_tab_work(tab: Tab) -> None:
    page = tab.open("view=theme&theme=marketing")
    page.reload()
    expect(page.locator(".pgv-row").first).to_be_visible()
    other = page.context.new_page()
    other.goto(tab.address)
    expect(other.locator(".pgv-row").first).to_be_visible()
    other.close()


def test_several_rows_are_hidden_after_confirmation_and_brought_back(tab: Tab, fleet: Fleet) -> None:
    write(fleet, "hiding", "Hide the first", "Hide the second", "Keep the third")
    page = tab.open("view=theme&theme=hiding")
    for text in ("Hide the first", "Hide the second"):
        row_with(page, text).get_by_role("checkbox").check()
    bar = page.get_by_role("toolbar")
    expect(bar).to_contain_text("2 rows chosen")
    bar.get_by_role("button", name="Hide…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2 memories")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(row_with(page, "Hide the first").get_by_text("hidden")).to_have_count(0)
    bar.get_by_role("button", name="Hide…").click()
    dialog.get_by_role("button", name="Hide", exact=True).click()
    expect(row_with(page, "Hide the first").get_by_text("hidden")).to_be_visible()
    page.locator(".pgv-done").get_by_role("button", name="Undo").click()
    dialog.get_by_role("button", name="Bring back").click()
    expect(row_with(page, "Hide the first").get_by_text("hidden")).to_have_count(0)


@mostly_alone
def test_a_memory_is_added_changed_and_what_was_changed_is_undone(tab: Tab) -> None:
    page = tab.open()
    page.get_by_role("button", name="Add a memory…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("What to remember").fill("The crane is rented until Friday")
    dialog.get_by_label("Theme", exact=True).fill("adding")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".pgv-done")).to_contain_text("stored in adding")
    row = row_with(page, "The crane is rented")
    row.get_by_role("button", name="Edit…").click()
    dialog.get_by_label("Text").fill("The crane is rented until Monday")
    dialog.get_by_role("button", name="See what changes…").click()
    expect(dialog.locator(".pgv-before")).to_contain_text("until Friday")
    dialog.get_by_role("button", name="Change it").click()
    expect(row_with(page, "until Monday")).to_be_visible()
    row_with(page, "until Monday").get_by_role("link").first.click()
    page.locator(".pgv-row", has_text="changed").get_by_role("button", name="Undo").click()
    dialog.get_by_role("button", name="Undo it").click()
    expect(page.locator(".pgv-done")).to_contain_text("undone")
    page = tab.open("view=theme&theme=adding")
    expect(row_with(page, "until Friday")).to_be_visible()


@mostly_alone
def test_a_theme_is_forgotten_when_its_name_is_typed(tab: Tab, fleet: Fleet) -> None:
    name = "short\u202elived \u200b"
    write(fleet, name, "Something for the first", "Something for the second")
    page = tab.open(urlencode({"view": "theme", "theme": name}))
    row_with(page, "for the first").get_by_role("button", name="Forget…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 memory")
    dialog.get_by_role("button", name="Erase for good").click()
    expect(page.locator(".pgv-done")).to_contain_text("Forgotten.")
    expect(page.locator(".pgv-row", has_text="for the first")).to_have_count(0)
    page.get_by_role("button", name="Forget the theme…").click()
    erase = dialog.get_by_role("button", name="Erase for good")
    expect(dialog).to_contain_text("1 memory")
    expect(erase).to_be_disabled()
    # What is shown is spelled out, and can be typed that way.
    dialog.get_by_role("textbox").fill("shortU+202Elived U+200B")
    erase.click()
    expect(page.locator(".pgv-done")).to_contain_text("Forgotten.")
    expect(page.locator(".pgv-themes")).not_to_contain_text("lived")
    # The browser itself notes an answer that was an error; the page says it in words.
    tab.complaints[:] = [each for each in tab.complaints if "status of 404" not in each]


@mostly_alone
def test_what_is_hidden_is_listed_with_its_rule(tab: Tab) -> None:
    page = tab.open("view=theme&theme=support&tab=hidden")
    row = row_with(page, NOTICED_SESSION)
    expect(row).to_contain_text("2 turns, 2 memories")
    row.get_by_role("button", name="Bring back…").click()
    expect(page.get_by_role("dialog")).to_contain_text("Recall finds it again.")
    page.get_by_role("button", name="Leave it").click()


@mostly_alone
def test_poisoned_memories_are_inert_and_marked(tab: Tab) -> None:
    page = tab.open("view=theme&theme=support")
    expect(page.locator(".pgv-rows")).to_contain_text("<script>fetch(")
    expect(page.locator(".pgv-hidden-sign").first).to_have_text("U+202E")
    assert page.locator(".pgv-root script, .pgv-root img, .pgv-root iframe").count() == 0
    expect(row_with(page, POISON[0][:40]).locator(".pgv-trust")).to_have_text("! untrusted")


@mostly_alone
def test_a_memory_shows_its_history(tab: Tab) -> None:
    page = tab.open("view=theme&theme=workshop&tab=events")
    event = row_with(page, "The lathe has its new bearings")
    expect(event.locator(".pgv-before")).to_contain_text("The lathe needs new bearings")
    page = tab.open("view=theme&theme=workshop")
    row_with(page, "The lathe has its new bearings").get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    expect(page.locator(".pgv-facts")).to_contain_text("workshop")


@mostly_alone
def test_the_page_survives_a_database_that_goes_away_and_comes_back(tab: Tab, fleet: Fleet) -> None:
    page = tab.open()
    expect(page.locator(".pgv-row").first).to_be_visible()
    fleet.proxy.mode = "refuse"
    strip = page.get_by_label("Health")
    expect(strip).to_contain_text("Something is wrong", timeout=20_000)
    expect(strip.locator("code")).to_contain_text("hermes-pgvector doctor")
    expect(page.locator(".pgv-row").first).to_be_visible()
    page.evaluate("location.hash = 'view=theme&theme=support'")
    expect(page.get_by_role("alert").first).to_contain_text("could not be read")
    fleet.proxy.mode = "pass"
    expect(strip).to_contain_text("All works", timeout=20_000)
    # The browser itself notes an answer that was an error; the page says it in words.
    tab.complaints[:] = [each for each in tab.complaints if "status of 503" not in each]


VIEWS = {
    "home": "",
    "search": f"view=search&q={MEANT.replace(' ', '+')}",
    "theme": "view=theme&theme=support",
    "sessions": "view=theme&theme=research&tab=sessions",
    "hidden": "view=theme&theme=support&tab=hidden",
    "all": "view=all",
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
        page.wait_for_selector(READY)
        assert serious(page) == [], place
    page = tab.open(VIEWS["theme"])
    page.get_by_role("button", name="Hide…").first.click()
    page.wait_for_selector(".pgv-plan")
    assert serious(page) == []


@mostly_alone
def test_everything_fits_a_small_screen(tab: Tab) -> None:
    tab.page.set_viewport_size({"width": 400, "height": 800})
    for place in VIEWS.values():
        page = tab.open(place)
        page.wait_for_selector(READY)
        wide = page.evaluate(
            "[...document.querySelectorAll('.pgv-root *')].filter(each => !each.closest('svg, dialog, thead')"
            " && each.getBoundingClientRect().right > innerWidth + 1).map(each => each.className)"
        )
        assert wide == [], place


@mostly_alone
def test_the_keyboard_is_enough(tab: Tab) -> None:
    page = tab.open()
    link = page.locator(".pgv-themes").get_by_role("link", name="marketing", exact=True)
    link.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Parts of this theme")).to_be_visible()
    expect(page.locator(".pgv-main")).to_be_focused()
    page.go_back()
    expect(page.locator(".pgv-themes")).to_be_visible()
