"""Time in words: what mentions a time, whether a question asks for one, and which days it means.

Pure and deterministic: phrases are read against a given clock. English, plus ISO and numeric dates in any language. The
result only boosts hits, so a misread phrase costs little.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


MONTHS = _words("january february march april may june july august september october november december")
WEEKDAYS = _words("monday tuesday wednesday thursday friday saturday sunday")
SEASONS = {"spring": (3, 5), "summer": (6, 8), "autumn": (9, 11), "fall": (9, 11), "winter": (12, 14)}

_TIME_WORDS = _words(
    "yesterday today tomorrow tonight weekend ago week month year day hour morning evening afternoon night spring"
    " summer autumn winter birthday anniversary recently last next since"
)
TIMES = " | ".join(f"{word}:A" for word in (*MONTHS, *WEEKDAYS, *_TIME_WORDS)) + " | 19:*A | 20:*A"
"""What a row says that speaks of a day, a period or a year, as to_tsquery takes it."""
# As text: made into patterns when a question comes, not when the package is loaded.
_ASKS_WHEN = (
    r"(?i)\b(?:when|what (?:time|date|day|month|year)|which (?:day|date|month|year|week)|how long"
    r"|how many (?:days|weeks|months|years)|how (?:recent|often|old))\b"
)

_ASKS_NOW = (
    r"(?i)\b(?:current(?:ly)?|now|latest|newest|(?:most )?recent(?:ly)?|still|these days|at the moment|so far"
    r"|(?:do|am|have) (?:i|we)|i (?:have|am|own|need|use|want|like)|(?:is|are) (?:my|our|the|there))\b"
)

_NUMBERS = {
    word: number
    for number, word in enumerate(_words("zero one two three four five six seven eight nine ten eleven twelve"))
} | {"a": 1, "an": 1, "couple": 2, "a couple of": 2, "few": 3, "a few": 3, "several": 4}
_NUMBER = r"(?P<number>\d{1,4}|a couple of|a few|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
_MONTH = "(?P<month>" + "|".join(f"{name}|{name[:3]}" for name in MONTHS) + r")\b\.?"
_WEEKDAY = "(?P<weekday>" + "|".join(WEEKDAYS) + ")"
_ORDINAL = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"


class Period(NamedTuple):
    """From `start` until just before `end`."""

    start: datetime
    end: datetime


def asks_when(question: str) -> bool:
    """Whether a question wants to know a time."""
    return re.search(_ASKS_WHEN, question[:2000]) is not None


def asks_about_now(question: str) -> bool:
    """Whether a question is about how things are, so that a newer answer is right where two differ."""
    return re.search(_ASKS_NOW, question[:2000]) is not None


def named_period(question: str, now: datetime) -> Period | None:
    """The first day, date or period a question names, read on the clock `now`; None when it names none."""
    text = question[:2000].lower()
    for pattern, read in _PHRASES:
        for found in re.finditer(pattern, text):
            try:
                period = read(found, now)
            except (ValueError, OverflowError):
                continue
            if period is not None:
                return period
    return None


def _day(year: int, month: int, day: int, now: datetime) -> Period:
    start = datetime(year, month, day, tzinfo=now.tzinfo)
    return Period(start, start + timedelta(days=1))


def _days(now: datetime, first: int, length: int = 1) -> Period:
    """`length` days, the first of which is `first` days from today."""
    start = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=first)
    return Period(start, start + timedelta(days=length))


def _months(year: int, month: int, length: int, now: datetime) -> Period:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    last_year, last_month = year + (month - 1 + length) // 12, (month - 1 + length) % 12 + 1
    return Period(datetime(year, month, 1, tzinfo=now.tzinfo), datetime(last_year, last_month, 1, tzinfo=now.tzinfo))


def _month_number(found: re.Match[str]) -> int:
    return next(index for index, name in enumerate(MONTHS, 1) if name[:3] == found["month"][:3])


def _past_year(month: int, day: int, now: datetime) -> int:
    """The year of the latest such date that is not in the future."""
    return now.year if (month, day) <= (now.month, now.day) else now.year - 1


def _date(found: re.Match[str], now: datetime) -> Period:
    """A day, its month as a number or by its name; without a year the latest such day."""
    month = int(found["month"]) if found["month"].isdigit() else _month_number(found)
    day = int(found["day"])
    year = int(found["year"]) if found["year"] else _past_year(month, day, now)
    return _day(year + 2000 if year < 100 else year, month, day, now)


def _iso_month(found: re.Match[str], now: datetime) -> Period:
    return _months(int(found["year"]), int(found["month"]), 1, now)


def _slashed(found: re.Match[str], now: datetime) -> Period:
    first, second = int(found["first"]), int(found["second"])
    # Day before month where it can only be so, otherwise month first.
    month, day = (second, first) if first > 12 else (first, second)
    year = int(found["year"]) if found["year"] else _past_year(month, day, now)
    return _day(year + 2000 if year < 100 else year, month, day, now)


def _named_month(found: re.Match[str], now: datetime) -> Period:
    month = _month_number(found)
    year = int(found["year"]) if found["year"] else _past_year(month, 1, now)
    if not found["year"] and found["which"] == "last" and month == now.month:
        year = now.year - 1
    return _months(year, month, 1, now)


def _ago(found: re.Match[str], now: datetime) -> Period:
    number = _NUMBERS.get(found["number"], 0) or int(found["number"])
    unit = found["unit"]
    if unit == "day":
        return _days(now, -number)
    if unit == "week":
        return _days(now, -7 * number - 3, 7)
    if unit == "month":
        middle = _months(now.year, now.month - number, 1, now).start
        day = min(now.day, calendar.monthrange(middle.year, middle.month)[1])
        return _days(middle.replace(day=day), -15, 31)
    return _months(now.year - number, now.month - 3, 7, now)


def _recent(found: re.Match[str], now: datetime) -> Period:
    """The last few days, weeks, months."""
    number = _NUMBERS.get(found["number"] or "a few", 0) or int(found["number"])
    length = number * {"day": 1, "week": 7, "month": 31, "year": 366}[found["unit"]]
    return _days(now, -length, length + 1)


def _weekday(found: re.Match[str], now: datetime) -> Period:
    back = (now.weekday() - WEEKDAYS.index(found["weekday"])) % 7
    return _days(now, -(back or 7) if found["which"] != "this" else -back)


def _relative(found: re.Match[str], now: datetime) -> Period | None:
    which, unit = found["which"], found["unit"]
    step = {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1}[which]
    monday = -now.weekday()
    if unit == "week":
        return _days(now, monday + 7 * step, 7)
    if unit == "weekend":
        return _days(now, monday + (5 if now.weekday() >= 5 and step == 0 else 5 + 7 * step), 2)
    if unit == "month":
        return _months(now.year, now.month + step, 1, now)
    if unit == "year":
        return _months(now.year + step, 1, 12, now)
    if unit == "night":
        return _days(now, -1 if step < 0 else 0)
    first, last = SEASONS[unit]
    year = now.year if (first <= now.month) else now.year - 1
    if step < 0 and first <= now.month <= last:
        year -= 1
    return _months(year, first, last - first + 1, now)


def _year(found: re.Match[str], now: datetime) -> Period:
    return _months(int(found["year"]), 1, 12, now)


def _word(found: re.Match[str], now: datetime) -> Period:
    offsets = {"today": 0, "tonight": 0, "yesterday": -1, "tomorrow": 1}
    if found["word"].startswith("the day before"):
        return _days(now, -2)
    return _days(now, offsets[found["word"]])


_Reader = Callable[[re.Match[str], datetime], Period | None]
# More exact forms first: a full date wins over the month or year inside it.
# As text: made into patterns when a question comes, not when the package is loaded.
_PHRASES: tuple[tuple[str, _Reader], ...] = (
    (r"\b(?P<year>(?:19|20)\d\d)[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})\b", _date),
    (r"(?P<year>(?:19|20)\d\d)年(?P<month>\d{1,2})月(?P<day>\d{1,2})日", _date),
    (r"(?P<year>(?:19|20)\d\d)年(?P<month>\d{1,2})月", _iso_month),
    (r"\b(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4}|\d\d)?(?!\d)", _date),
    (r"(?<![\d/])(?P<first>\d{1,2})/(?P<second>\d{1,2})(?:/(?P<year>\d{4}|\d\d))?(?![\d/])", _slashed),
    (rf"\b{_ORDINAL}(?: of)? {_MONTH}(?:,? (?P<year>(?:19|20)\d\d))?\b", _date),
    (rf"\b{_MONTH} (?:the )?{_ORDINAL}\b(?:,? (?P<year>(?:19|20)\d\d))?", _date),
    (r"\b(?P<word>the day before yesterday|yesterday|today|tonight|tomorrow)\b", _word),
    (rf"\b{_NUMBER} (?P<unit>day|week|month|year)s? (?:ago|back|earlier)\b", _ago),
    (rf"\b(?:last|past|previous) {_NUMBER} (?P<unit>day|week|month|year)s?\b", _recent),
    (rf"\b(?:(?P<which>last|this|past|on|next) )?{_WEEKDAY}s?\b", _weekday),
    (
        r"\b(?P<which>last|past|previous|this|next) (?P<unit>weekend|week|month|year|night|"
        r"spring|summer|autumn|fall|winter)\b",
        _relative,
    ),
    (r"\b(?P<year>(?:19|20)\d\d)-(?P<month>0[1-9]|1[0-2])\b", _iso_month),
    # "may" and "march" are verbs too: without a year they need a word before them that makes them months.
    (
        rf"\b(?P<which>in|last|this|since|during|until|of|early|late|mid) {_MONTH}(?:,? (?P<year>(?:19|20)\d\d))?",
        _named_month,
    ),
    (rf"(?P<which>\b){_MONTH},? (?P<year>(?:19|20)\d\d)\b", _named_month),
    (r"\b(?:in|during|since|of|year) (?P<year>(?:19|20)\d\d)\b", _year),
)
