"""What the reference says is what the code, and the database it makes, are."""

from __future__ import annotations

import importlib.util
import inspect
import re
from types import ModuleType

import psycopg
import pytest
from docs.pages import ROOT, Page, page

from hermes_memory_pgvector.journal import journal
from hermes_memory_pgvector.mirror import mirror
from hermes_memory_pgvector.postgres.statements import text_of
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.recall import prefetch, recall, tools
from hermes_memory_pgvector.runtime import tasks
from hermes_memory_pgvector.store.search_statement import SEARCHED
from hermes_memory_pgvector.values import Kind
from hermes_memory_pgvector.writer import chunks, embed_pending, writer
from testing.postgres import Database

_ROW = re.compile(r"^\| (?P<cells>.+) \|$", re.MULTILINE)
QUOTE = re.compile(r'"([^"]+)"')


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(text: str) -> list[list[str]]:
    """The rows of the tables in a text."""
    return [[cell.strip() for cell in re.split(r" \|(?: |$)", found["cells"])] for found in _ROW.finditer(text)]


def flat(one: Page) -> str:
    """The text of a page as one line: where a sentence wraps does not matter."""
    return " ".join(one.text.split())


def test_the_settings_page_is_current() -> None:
    assert page("docs/reference/settings.md").text == generator().settings_page()


def test_the_commands_page_is_current() -> None:
    # Versions of Python wrap help texts in different places.
    assert page("docs/reference/commands.md").text.split() == generator().commands_page().split()


def documented_columns() -> dict[str, dict[str, str]]:
    """Table by table, what the page says of its columns."""
    found: dict[str, dict[str, str]] = {}
    for section in re.split(r"^### ", page("docs/reference/database.md").text, flags=re.MULTILINE)[1:]:
        title, _, rest = section.partition("\n")
        body = re.split(r"^## ", rest, flags=re.MULTILINE)[0]
        if columns := {cells[0].strip("`"): cells[1] for cells in rows(body) if cells[0].startswith("`")}:
            found[title] = columns
    return found


def test_the_columns_people_query_are_documented_with_their_types(database: Database) -> None:
    with psycopg.connect(database.owner_dsn) as connection:
        actual: dict[str, dict[str, str]] = {}
        for table, column, kind in connection.execute(
            "SELECT c.relname, a.attname, t.typname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " JOIN pg_type t ON t.oid = a.atttypid WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'"
            " AND a.attnum > 0 AND NOT a.attisdropped AND c.relname IN ('memory_entries', 'conversations')"
        ):
            usual: dict[str, str] = {"int8": "bigint", "int4": "integer", "bool": "boolean"}
            actual.setdefault(table, {})[column] = str(usual.get(kind, kind))
    assert documented_columns() == actual


def test_the_queries_by_hand_run_as_the_runtime_role(database: Database) -> None:
    queries = list(page("docs/reference/database.md").blocks("sql"))
    assert queries
    with psycopg.connect(database.runtime_dsn) as connection:
        for query in queries:
            connection.execute(query)
        connection.rollback()


def test_the_promise_of_each_sync_mode_is_given_word_for_word() -> None:
    promises = re.findall(r"^- `(?:process|batch|always)`.*$", journal.__doc__ or "", re.MULTILINE)
    assert len(promises) == 3
    for promise in promises:
        assert promise in page("docs/explanation/durability.md").text.splitlines()


def test_every_hook_is_documented_and_every_documented_hook_exists() -> None:
    documented = {
        name
        for cells in rows(page("docs/reference/hooks.md").text)
        for name in re.findall(r"`(\w+)`", cells[0])
        if len(cells) == 3
    }
    actual = {
        name
        for name, member in vars(PgvectorMemoryProvider).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }
    # The tools' schemas have a page of their own.
    assert documented == actual - {"get_tool_schemas"}


def test_every_argument_of_the_tools_is_documented() -> None:
    parts = page("docs/reference/tools.md").text.split("## recall_conversation")
    for schema in tools.schemas():
        text = parts[0] if schema["name"] == tools.MEMORY_TOOL else parts[0] + parts[1]
        for name in schema["parameters"]["properties"]:
            assert re.search(rf"^\| .*`{name}`", text, re.MULTILINE), (schema["name"], name)


def test_every_sentence_of_the_tools_is_one_they_say() -> None:
    said = inspect.getsource(tools).replace("{name}", "since")
    section = page("docs/reference/tools.md").text.split("## Errors")[1]
    sentences = [cells[0] for cells in rows(section) if cells[0].endswith(".")]
    assert len(sentences) == 4
    for sentence in sentences:
        assert sentence in said


def test_every_message_that_troubleshooting_quotes_is_one_we_print() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    quoted = [quote for cells in rows(page("docs/guides/troubleshooting.md").text) for quote in QUOTE.findall(cells[0])]
    parts = [part.strip(" ,;:") for quote in quoted for part in re.split(r"[…()]", quote)]
    assert len(parts) > 20
    assert [part for part in parts if part not in sources] == []


@pytest.mark.parametrize(
    ("code", "phrase"),
    [
        ("w.worded + 0.06 * coalesce(w.meaning, 3)", "per standard deviation nearer than unrelated texts | × 0.06"),
        ("WHEN 1 THEN 0.6 * f.share", "words from the turns before it count 0.6"),
        ("m.coverage + 0.5 * coalesce(", "words that were asked with | × 0.5"),
        ("w.answers_when THEN 0.3 ", "the text speaks of a time | + 0.30"),
        ("%(period_end)s::timestamptz THEN 0.5 ", "`2026-05-04`) | + 0.50"),
        ("w.role = %(speaker)s::text THEN 0.35 ", "the user) | + 0.35"),
        ("w.is_by_author THEN 0.2 ", "a chat of several people | + 0.20"),
    ],
    ids=["similarity", "before", "session", "when", "period", "speaker", "author"],
)
def test_ranks_are_weighted_as_explained(code: str, phrase: str) -> None:
    assert code in text_of("queries/search/search")
    assert phrase in flat(page("docs/explanation/recall.md"))


def test_bars_are_those_of_the_code() -> None:
    told = flat(RECALL)
    for kind, name in ((Kind.TURN, "turns"), (Kind.MEMORY, "memories")):
        one = SEARCHED[kind]
        assert f"{one.bar} for {name}" in told
        assert f"{one.ambient_bar} for {name}" in told


RECALL, DURABILITY, EMBEDDERS = (
    page(f"docs/{name}.md") for name in ("explanation/recall", "explanation/durability", "guides/embedders")
)
FIGURES: list[tuple[Page, str]] = [
    (RECALL, f"one line of at most {prefetch.LINE_CHARS} characters"),
    (RECALL, f"within {recall.EMBED_SHARE:.0%}".replace("%", " %")),
    (EMBEDDERS, f"up to {chunks.BEFORE_CHARS} characters of the turn before"),
    (EMBEDDERS, f"in pieces of {chunks.PIECE_CHARS:,} characters, at most {chunks.MAX_PIECES}"),
    (EMBEDDERS, f"`substantive_only` ({chunks.SUBSTANTIVE_CHARS} characters and more)"),
    (DURABILITY, f"it is tried every {writer.HOLD_SECONDS:.0f} seconds"),
    (page("docs/reference/tools.md"), f"at most {tools.CONTENT_CHARS:,} characters"),
    (page("docs/explanation/mirror.md"), f"quiet for {mirror.QUIET_SECONDS} seconds"),
    (page("docs/guides/fleet.md"), f"tried every {embed_pending.HOLD_SECONDS:.0f} s"),
]


@pytest.mark.parametrize(("one", "phrase"), FIGURES, ids=[phrase[:40] for _, phrase in FIGURES])
def test_figures_are_those_of_the_code(one: Page, phrase: str) -> None:
    assert phrase in flat(one)


def test_limits_that_are_told_in_words_are_those_of_the_code() -> None:
    assert prefetch.SURE_TURNS == 3
    assert "beyond the third" in flat(RECALL)
    assert tasks.FILES_SECONDS == 2
    assert "looks at the files every two seconds" in flat(page("docs/explanation/mirror.md"))
