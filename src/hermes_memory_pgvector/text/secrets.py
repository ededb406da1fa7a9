"""Secrets that people paste into a chat: keys, tokens, passwords in addresses. Pure."""

from __future__ import annotations

import re

MASK = "[secret]"
_WHOLE = re.compile(
    r"""
    -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
  | \b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}
  | \b(?:ghp|gho|ghu|ghs|ghr|github_pat|glpat|xox[abpors]|hf|npm|pypi|dop_v1|shpat|key)[-_][A-Za-z0-9_-]{16,}
  | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
  | \bAIza[A-Za-z0-9_-]{35}\b
  | \beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+
    """,
    re.VERBOSE | re.DOTALL,
)
# A scheme is short; without a bound, each word of a long row of dots would be read to its end.
_IN_ADDRESS = re.compile(r"(\b[a-z][a-z0-9+.-]{0,30}://[^\s:/@]*:)[^\s@/]+(?=@)", re.IGNORECASE)
_NAMED = re.compile(
    r"""
    ( \b(?:api[-_ ]?key|secret|token|passw(?:or)?d|pwd|authorization|bearer)\b
      ["']?\s*(?:[:=]|\bis\b)?\s*(?:bearer\s+)?["']? )
    (?=[^\s"']*[0-9])[^\s"',;]{8,}
    """,
    re.IGNORECASE | re.VERBOSE,
)


def masked(text: str) -> str:
    """The text with a mask in place of whatever looks like a secret."""
    text = _WHOLE.sub(MASK, text)
    text = _IN_ADDRESS.sub(lambda found: found[1] + MASK, text)
    return _NAMED.sub(lambda found: found[1] + MASK, text)
