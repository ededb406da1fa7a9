"""Who is speaking: priorities, pseudonyms, the operator's rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_pgvector.capture.identity import LATIN_1, resolve
from hermes_memory_pgvector.config.settings import Settings, parse
from hermes_memory_pgvector.values import is_private_theme

KEY = b"k" * 32


def session_of(settings: Settings | None = None, **arguments: Any) -> Any:
    return resolve("s1", arguments, settings or Settings(), lambda: KEY, str(arguments.get("agent_identity") or ""))[0]


@pytest.mark.parametrize(
    ("arguments", "theme"),
    [
        ({"gateway_session_key": "marketing", "agent_identity": "coder", "agent_workspace": "hermes"}, "marketing"),
        ({"agent_identity": "coder", "agent_workspace": "hermes"}, "coder"),
        ({"agent_identity": "default", "agent_workspace": "hermes"}, "hermes"),
        ({"agent_identity": "default"}, "default"),
        ({}, "default"),
        ({"gateway_session_key": "  MarKeting \n"}, "marketing"),
        ({"gateway_session_key": "", "agent_identity": "coder"}, "coder"),
        ({"gateway_session_key": 7, "agent_identity": ["x"], "agent_workspace": None}, "default"),
        ({"gateway_session_key": "STRASSE ẞ"}, "strasse ss"),
        ({"gateway_session_key": "bench"}, "_bench"),
        ({"gateway_session_key": "skill-bench-ws"}, "_bench"),
        ({"gateway_session_key": "workbench"}, "workbench"),
    ],
)
def test_theme_follows_the_order_of_names(arguments: dict[str, Any], theme: str) -> None:
    assert session_of(**arguments).theme == theme


def test_a_header_in_latin_1_names_the_theme_it_means_and_says_so() -> None:
    """As the host's HTTP server hands the bytes of a header over."""
    sent = {name: "größe".encode(name).decode("utf-8", "surrogateescape") for name in ("utf-8", "latin-1")}
    resolved = {
        name: resolve("s1", {"gateway_session_key": key}, Settings(), lambda: KEY) for name, key in sent.items()
    }
    assert {session.theme for session, _ in resolved.values()} == {"grösse"}
    assert resolved["utf-8"][1] is None
    assert resolved["latin-1"][1] == LATIN_1


def test_memory_files_belong_to_the_profile_not_to_the_request() -> None:
    session = session_of(gateway_session_key="marketing", agent_identity="default", agent_workspace="hermes")
    assert (session.theme, session.profile_theme) == ("marketing", "hermes")


@pytest.mark.parametrize(
    ("key", "prefix"),
    [
        ("agent:main:whatsapp:dm:15550100123", "dm-"),
        ("agent:coder:telegram:group:-100:555", "group-"),
        ("agent:main:webhook:webhook:webhook:hook:179:webhook:hook", "group-"),
        ("agent:main:signal:dm", "dm-"),
        ("whatsapp:dm:+15550100123", "dm-"),
        ("telegram:15550100123", "dm-"),
    ],
)
def test_messaging_keys_become_private_pseudonyms(key: str, prefix: str) -> None:
    theme = session_of(gateway_session_key=key).theme
    assert theme.startswith(prefix)
    assert is_private_theme(theme)
    assert "15550100123" not in theme
    assert theme == session_of(gateway_session_key=key.upper()).theme
    assert theme != resolve("s", {"gateway_session_key": key}, Settings(), lambda: b"o" * 32)[0].theme


def test_no_two_people_share_a_theme() -> None:
    keys = [f"agent:main:whatsapp:dm:1555010{n}" for n in range(100)]
    assert len({session_of(gateway_session_key=key).theme for key in keys}) == 100


def test_threads_of_one_direct_chat_have_one_partner() -> None:
    plain = session_of(gateway_session_key="agent:main:telegram:dm:77").theme
    threaded = session_of(gateway_session_key="agent:main:telegram:dm:77:9", thread_id="9").theme
    assert plain == threaded


def test_a_private_theme_cannot_be_claimed_by_name() -> None:
    private = session_of(gateway_session_key="agent:main:whatsapp:dm:1").theme
    assert session_of(gateway_session_key=private).theme == "default"
    assert session_of(gateway_session_key="_bench").theme == "default"


def test_ordinary_names_with_colons_stay_themes() -> None:
    assert session_of(gateway_session_key="desk:signal:main").theme == "desk:signal:main"


def test_rules_of_the_operator() -> None:
    settings = parse(
        {"f": {"allowed_themes": "marketing, Sales", "identity_aliases": "mkt=marketing,agent:main:x:dm:1=boss"}}
    ).settings
    assert session_of(settings, gateway_session_key="MKT").theme == "marketing"
    assert session_of(settings, gateway_session_key="sales").theme == "sales"
    assert session_of(settings, gateway_session_key="agent:main:x:dm:1").theme == "boss"
    session, warning = resolve("s", {"gateway_session_key": "typo"}, settings, lambda: KEY)
    assert session.theme == "default"
    assert warning is not None
    assert "allowed_themes" in warning


def test_rejecting_bench_sends_it_to_default() -> None:
    assert session_of(parse({"f": {"bench_mode": "reject"}}).settings, gateway_session_key="bench").theme == "default"


def test_profiles_share_a_theme_unless_told_otherwise() -> None:
    arguments: dict[str, Any] = {"gateway_session_key": "k1", "agent_identity": "coder"}
    assert session_of(**arguments).theme == "k1"
    separate = parse({"f": {"profile_scope": "separate"}}).settings
    assert session_of(separate, **arguments).theme == "coder/k1"


@pytest.mark.parametrize(
    ("context", "may_write"), [("primary", True), ("cron", True), ("subagent", False), (None, True)]
)
def test_contexts_that_may_write(context: Any, may_write: bool) -> None:
    assert session_of(agent_context=context).may_write is may_write


@pytest.mark.parametrize(("platform", "may_write"), [("cron", True), ("Subagent", False), ("telegram", True)])
def test_who_speaks_unattended_is_told_by_the_platform_whatever_the_context_says(
    platform: str, may_write: bool
) -> None:
    """hermes-agent 0.20 runs scheduled jobs in the context of a user."""
    assert session_of(agent_context="primary", platform=platform).may_write is may_write
    settings = parse({"config.yaml": {"write_contexts": "primary"}}).settings
    assert session_of(settings, agent_context="primary", platform=platform).may_write is (platform == "telegram")


def test_a_key_of_any_bytes_is_a_usable_theme() -> None:
    theme = session_of(gateway_session_key="a\x00b\ud800c" + "x" * 500).theme
    theme.encode("utf-8")
    assert "\x00" not in theme
    assert len(theme) <= 256


def theme_in(profile: str, key: str | None, *profiles: str) -> str:
    """The theme of a key in a profile, when profiles are separate and these exist."""
    settings = parse({"f": {"profile_scope": "separate"}}).settings
    arguments: dict[str, Any] = {"agent_identity": profile, "agent_workspace": "hermes", "gateway_session_key": key}
    session, _ = resolve("s", arguments, settings, lambda: KEY, profile.casefold(), lambda name: name in profiles)
    return str(session.theme)


def test_a_key_cannot_be_written_so_that_it_is_another_profiles_theme() -> None:
    assert theme_in("work", "marketing") == "work/marketing"
    assert theme_in("default", "work/marketing") == "default/work/marketing"
    assert theme_in("default", "default/work/marketing") == "default/default/work/marketing"
    # What a profile says without a key has the profile's name.
    assert theme_in("work", None, "work") == "work"
    assert theme_in("default", "work", "work") == "default/work"


def test_ordinary_names_keep_their_themes_when_profiles_are_separate() -> None:
    assert theme_in("default", "marketing", "work") == "marketing"
    assert theme_in("default", None, "work") == "hermes"
    assert theme_in("work", "a/b", "work") == "work/a/b"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["default", "work", "work/a", "work%2fa", "a" * 250]), st.text("a/%wordk", min_size=1)
        ),
        min_size=2,
        max_size=12,
        unique=True,
    )
)
def test_no_two_profiles_share_a_theme_whatever_their_keys(sessions: list[tuple[str, str]]) -> None:
    profiles = {profile for profile, _ in sessions}
    themes: dict[str, str] = {}
    for profile, key in sessions:
        theme = theme_in(profile, key, *profiles)
        assert themes.setdefault(theme, profile) == profile


def test_long_names_do_not_share_a_theme() -> None:
    one, other = "a" * 300 + "1", "a" * 300 + "2"
    assert session_of(gateway_session_key=one).theme != session_of(gateway_session_key=other).theme
    assert session_of(gateway_session_key=one).theme == session_of(gateway_session_key=one.upper()).theme
    assert len(session_of(gateway_session_key=one).theme) == 256
    assert session_of(gateway_session_key="a" * 256).theme == "a" * 256
    # Also where only the profile before it makes a name too long.
    assert theme_in("work", "a" * 255 + "1") != theme_in("work", "a" * 255 + "2")
    assert len(theme_in("p" * 300, "a" * 256)) == 256
