"""Output that reads well and cannot steer a terminal."""

from __future__ import annotations

import pytest

from hermes_memory_pgvector.setup import terminal


def test_columns_are_aligned_also_with_wide_and_combining_signs(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.table(("theme", "turns"), [("日本", "1"), ("e\u0301t\u00e9", "1,200"), ("plain", "20")], right=(1,))
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["  theme  turns", "  日本       1", "  e\u0301té    1,200", "  plain     20"]


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert terminal.one_line("a\x1b[31mb\nc\x07\u202ed") == "a [31mb c  d"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0004, "0 ms"), (0.042, "42 ms"), (0.0999, "0.1 s"), (12.34, "12.3 s"), (600, "10 min"), (7200, "2 h"),
        (864000, "10 days"),
    ],
)  # fmt: skip
def test_time_in_a_unit_that_reads_well(value: float, text: str) -> None:
    assert terminal.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (256_000_000, "256 MB"), (3 * 10**15, "3000 TB")]
)
def test_sizes_in_a_unit_that_reads_well(value: int, text: str) -> None:
    assert terminal.size(value) == text


def test_a_step_that_fails_says_so_and_lets_the_error_through(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError), terminal.step("work"):
        raise ValueError
    assert capsys.readouterr().out.strip() == "✗ work"


def test_counting_nouns() -> None:
    assert [terminal.count(n, "memory", "memories") for n in (0, 1, 2000)] == [
        "0 memories",
        "1 memory",
        "2,000 memories",
    ]
