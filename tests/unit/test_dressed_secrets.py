"""Known tokens in the forms in which they are pasted: more than a thousand dressings, made here from parts."""

from __future__ import annotations

import random
import re
import signal
import string
import subprocess
import sys
import urllib.parse

import pytest

from hermes_memory_pgvector.text.folding import undressed
from hermes_memory_pgvector.text.secrets import masked

ALNUM = string.ascii_letters + string.digits
HEX = string.digits + "abcdef"
BASE32 = string.ascii_uppercase + "234567"
UPPER = string.ascii_uppercase + string.digits
# The beginning of a token, what follows, and how much of it; several parts have a sign between them.
FORMS: list[tuple[str, str, int]] = [
    ("AKIA", BASE32, 16), ("ASIA", BASE32, 16), ("AIza", ALNUM, 35), ("AQ.", ALNUM, 44), ("GOCSPX-", ALNUM, 28),
    ("ya29.", ALNUM, 60), ("ghp_", ALNUM, 36), ("gho_", ALNUM, 36), ("github_pat_", ALNUM, 70), ("glpat-", ALNUM, 20),
    ("xoxb-1234567890-", ALNUM, 24), ("xoxp-1234567890-", ALNUM, 24), ("xapp-1-", ALNUM, 30),
    ("sk_live_", ALNUM, 24), ("whsec_", ALNUM, 32), ("sk-ant-api03-", ALNUM, 80), ("sk-proj-", ALNUM, 48),
    ("sk-or-v1-", HEX, 64), ("hf_", ALNUM, 34), ("gsk_", ALNUM, 52), ("xai-", ALNUM, 80), ("pplx-", ALNUM, 48),
    ("r8_", ALNUM, 37), ("npm_", ALNUM, 36), ("pypi-AgEIcHlwaS5vcmc", ALNUM, 100), ("key-", HEX, 32), ("SK", HEX, 32),
    ("dop_v1_", HEX, 64), ("shpat_", HEX, 32), ("dapi", HEX, 32), ("dckr_pat_", ALNUM, 27), ("hvs.", ALNUM, 90),
    ("NRAK-", UPPER, 27), ("ntn_", ALNUM, 46), ("lin_api_", ALNUM, 40), ("tvly-dev-", ALNUM, 32),
    ("figd_", ALNUM, 40), ("sbp_", HEX, 40), ("pscale_tkn_", ALNUM, 43), ("rubygems_", HEX, 48), ("pul-", HEX, 40),
    ("AGE-SECRET-KEY-1", UPPER, 58),
]  # fmt: skip
AROUND = [
    "{}", "the token is {} now", "({})", "[{}]", "<{}>", '"{}"', "'{}'", "`{}`", "**{}**", "__{}__", "*{}*", "_{}_",
    "~~{}~~", "> {}", "- {}", "+{}", "-{}", "key={}&next=1", "key={};", "a,{},b", "“{}”", "«{}»", "令牌{}。",
    "\x1b[31m{}\x1b[0m", "log\x1b[1;32m{}\x1b[0mend", "\x1b[38;5;196m{}\x1b[K",
    "\x1b]8;;https://a.example\x07{}\x1b]8;;\x07",
    "[31m{}[0m", "^[[31m{}^[[0m", "\\u001b[31m{}\\u001b[0m", "\\x1b[31m{}\\x1b[0m", "\\033[31m{}\\033[0m",
    '{{"log": "one\\n{}\\ntwo"}}', '{{"log": "one\\r\\n{}\\r\\n"}}', '{{"log": "a\\t{}\\t"}}',
    '"{{\\"token\\": \\"{}\\"}}"',
    '{{\\\\\\"token\\\\\\": \\\\\\"{}\\\\\\"}}', "x\\u003d{}\\u0026b", "next=%2Fa%3Ftoken%3D{}%26b%3D1",
    "q=token%20{}%20now",
    "%22{}%22", "%2522{}%2522", "&quot;{}&quot;", "&#34;{}&#34;", "&#x22;{}&#x22;", "a=1&amp;key={}&amp;b=2",
    "&lt;{}&gt;",
    "<b>{}</b>", "<code>{}</code>", "\u200b{}\u200b", "\ufeff{}", "\u202a{}\u202c", "\u00a0{}\u00a0", "\u3000{}\u3000",
    "one\r\n{}\r\ntwo", "\t{}\t", "a\u2028{}\u2028b", "{}.", "{},", "{}!", "{}:", "{}-old", "{}…", "x/{}/y",
    "\x9b1m{}\x9b0m", "\x1b(B{}", "log\\x0a{}\\x0a", "log\\012{}\\012", "a\\u{{a}}{}", "&quot{}&quot", "&num;{}&num;",
    "<a href='x'>{}</a>", "<td>{}</td>", "<!-- here -->{}", "%E2%80%8B{}%C2%A0", "\\342\\200\\213{}", "a=20{}=20b",
]  # fmt: skip
WITHIN = ["\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\x1b[1m", "\x1b[0m\x1b[31m", "&shy;", "\\u200b", "**",
          "\ufe0f", "\u034f", "\u3164", "\u2800", "\U000e0101", "\u0332", "\x08", "<wbr>", "<a>", "<!-- -->",
          "&ZeroWidthSpace;", "%E2%80%8B", "\\xe2\\x80\\x8b", "\\342\\200\\213", "\\u{200b}", "\x9b1m", "\x1b(B",
          "=\n", "\\\n"]  # fmt: skip
ENCODED = ["%{:02X}", "\\x{:02x}", "\\{:03o}", "\\u{{{:x}}}", "&#x{:x};"]
WIDE = {each: each + 0xFEE0 for each in range(0x21, 0x7F)}
CYRILLIC = str.maketrans("aeocpAEOCP", "\u0430\u0435\u043e\u0441\u0440\u0410\u0415\u041e\u0421\u0420")
SHOWN = 10
"""A part of a token this long says too much."""
_random = random.Random(29)


def token(begin: str, signs: str, length: int) -> str:
    return begin + "".join(_random.choices(signs, k=length - 1)) + "7"


def dressings(secret: str) -> list[str]:
    """A token around which, and in which, there is something."""
    within = [secret[:place] + each + secret[place:] for each in WITHIN for place in (2, len(secret) // 2)]
    encoded = ["".join(way.format(ord(sign)) for sign in secret) for way in ENCODED]
    other_letters = [secret.translate(WIDE), secret.translate(CYRILLIC), "".join(f"{sign}\u0332" for sign in secret)]
    escaped = [urllib.parse.quote(secret, safe=""), secret.replace("_", "\\_").replace("-", "\\-")]
    return [*(each.format(secret) for each in AROUND), *within, *encoded, *other_letters, *escaped]


def test_a_token_is_masked_however_it_is_dressed() -> None:
    tried, shown = 0, []
    for form in FORMS:
        secret = token(*form)
        core = secret[len(form[0]) :]
        for text in dressings(secret):
            tried += 1
            left = re.sub(r"\s", "", undressed(masked(text)).text)
            if any(core[at : at + SHOWN] in left for at in range(len(core) - SHOWN + 1)):
                shown.append(text)
    assert len(FORMS) >= 40
    assert tried >= 1000
    assert shown == [], [ascii(each) for each in shown]


def test_masking_a_dressed_token_leaves_the_words_around_it() -> None:
    secret = token("ghp_", ALNUM, 36)
    text = f'{{"log": "the build\\n\x1b[31m{secret}\x1b[0m\\nended well", "url": "a%3Fkey%3D{secret}%26page%3D2"}}'
    done = masked(text)
    assert secret not in done
    for words in ('{"log": "the build\\n', "\\nended well", "a%3Fkey%3D[redacted:", "%26page%3D2"):
        assert words in done


FUZZ = """
import resource, sys
from hermes_memory_pgvector.recall.fence import harmless
from hermes_memory_pgvector.text.folding import folded
from hermes_memory_pgvector.text.secrets import RULES, masked
pieces = dict.fromkeys([*(hint for rule in RULES for hint in rule.hints), *sys.argv[1:]])
used = resource.getrusage(resource.RUSAGE_SELF)
# A fifth of a second for 64 kB on the average, many times what it takes; a slow pattern alone takes several.
seconds = int(used.ru_utime + used.ru_stime) + 1 + len(pieces) * 2 // 5
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
for piece in pieces:
    print(ascii(piece), flush=True)
    for tail in ("1", "=a1_"):
        text = piece * (64_000 // len(piece)) + tail
        masked(text)
        masked(text.upper())
        folded(text)
        harmless(text)
"""
SIGNS = [
    "\\", "\\u", "%", "%25", "&amp;", "\x1b[", "\x1b]", "[1;", "*", "`", "<b ", "\u200b", "a://b:", "a@", " ", "\t",
    "=", "<", "</", "<system ", "aws sk :", "eyJaaaaaaaaaaaa.", 'token="\\', "token=a1b2c3d4,", "sk-a-", "glpat-a",
    "curl -u a", " -p", "AWS_SECRET", "bearer\t", "authorization: ", "machine a login b ", "BEGIN PRIVATE ",
    "private-lines: 1 a", "A_KEY=", "1234567890", "https://a:", "secret: '", "password is ", "M.a.", "AccountKey=",
    "%41", "&#x41;", "&uuml;", "&a", "\\x41", "%C3%BC", "=\n", "<br>", "<!--", "\ufe0f", "\u0455a", "\x9b", "a_ ",
    "\\u{", 'token=a1"b', "--token ", "a://b:c/", "| token |", "token: |\n", "<token>", "<tool ", "[system",
]  # fmt: skip


@pytest.mark.slow
def test_the_beginning_of_every_rule_over_and_over_costs_bounded_work() -> None:
    done = subprocess.run([sys.executable, "-c", FUZZ, *SIGNS], stdout=subprocess.PIPE, text=True, check=False)
    stopped = done.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
    assert not stopped, f"{done.stdout.splitlines()[-1]}: the work grows faster than the text"
    assert done.returncode == 0
