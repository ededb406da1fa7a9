"""What is told when the database went back to an earlier state."""

from __future__ import annotations

import pytest

from hermes_memory_pgvector.writer.setbacks import Setbacks


def test_what_is_missing_of_a_journal_is_added_up_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    setbacks = Setbacks()
    setbacks.went_back("a", mark=10, known=30, on_disk=5)
    # Records 11 to 40 are wanted and not there: 15 of the first 20 are counted already.
    setbacks.no_longer_kept("a", 11, 40)
    setbacks.went_back("b", mark=0, known=2, on_disk=2)
    assert setbacks.are_new
    setbacks.tell()
    setbacks.tell()
    assert (setbacks.again, setbacks.gone) == (7, 25)
    assert [record.getMessage() for record in caplog.records] == [
        "the database has gone back, as after a restore: of 32 records it no longer has, "
        "7 are stored again from the journal, and 25 are gone"
    ]
    setbacks.no_longer_kept("a", 11, 30)
    assert not setbacks.are_new
