"""Secrets that people paste into a chat: keys, tokens, passwords in addresses and in settings. Pure.

A text is searched as it was typed and as it reads: without colours, bold and unseen signs, its escapes read. A rule is
looked for only in lines that hold one of its hints, so a text without any costs a few microseconds.

The work grows with the length of a text and no faster: what a pattern repeats is bounded or never given back, and a
token is looked for only where a word begins. That holds for the rules here; an operator's own pattern is theirs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from hermes_memory_pgvector.text.folding import Undressed, undressed

PASSWORD = "password"  # noqa: S105 - the name of a kind
KEY_IN_METADATA = "redacted"
"""Where a row's metadata counts what was masked in it, by kind."""


class Rule(NamedTuple):
    """One kind of secret: what a text must hold for it to be looked for, and what it looks like.

    Where the pattern has a group with a name, only that part is masked.
    """

    kind: str
    hints: tuple[str, ...]
    """Any of them, in lower case; none at all means that it is looked for in every text."""
    pattern: str
    is_placeholder: Callable[[str], bool] = lambda _: False
    """Whether what was found only stands for a secret."""
    before: str = ""
    """What stands in the same line just before, if something must."""
    is_word: bool = False
    """Whether it is a long word of its own."""
    is_within_line: bool = True
    """Whether it never goes beyond a line; only lines with a hint are searched then."""


class Masked(NamedTuple):
    """A text without its secrets, and how many of each kind there were."""

    text: str
    counts: Mapping[str, int]


# As text, like all below: made into patterns when a text is looked at, not when the package is loaded.
_LONG_WORD = r"[A-Za-z0-9_-]{16}"
"""Every token has one, and most texts do not."""
BEFORE_CHARS = 200
"""How far back in a line something is looked for that makes a secret of what follows."""


_KINDS = (
    ("aws-key", "akia asia abia acca", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
    ("google-key", "aiza aq.", r"AIza[A-Za-z0-9_-]{35}|AQ\.[A-Za-z0-9_-]{40,}+"),
    ("google-oauth", "gocspx- ya29.", r"GOCSPX-[A-Za-z0-9_-]{24,}+|ya29\.[A-Za-z0-9_-]{20,}+"),
    (
        "github-token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        r"gh[pousr]_[A-Za-z0-9]{30,}+|github_pat_[A-Za-z0-9_]{22,}+",
    ),
    ("gitlab-token", "glpat- gldt- glrt- glcbt- glptt-", r"gl(?:pat|dt|rt|cbt|ptt)-[A-Za-z0-9_-]{20,}+"),
    ("slack-token", "xox xapp-", r"xox[abeoprs]-[A-Za-z0-9-]{11,}+|xapp-\d-[A-Za-z0-9-]{10,}+"),
    ("discord-token", "discord bot token", r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}+"),
    # In the addresses that a bot asks, and that logs tell, it stands right behind "bot".
    ("telegram-token", ":aa", r"(?:bot)?\d{8,10}:AA[A-Za-z0-9_-]{32,34}"),
    ("stripe-key", "_live_ _test_ whsec_", r"[srp]k_(?:live|test)_[A-Za-z0-9]{16,}+|whsec_[A-Za-z0-9]{24,}+"),
    ("anthropic-key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,}+"),
    ("openai-key", "sk-", r"sk-(?=[A-Za-z_-]*+\d)(?:[a-z0-9]{1,40}-){0,6}[A-Za-z0-9_]{20,}+"),
    ("huggingface-token", "hf_", r"hf_[A-Za-z0-9]{30,}+"),
    ("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{40,}+"),
    ("xai-key", "xai-", r"xai-[A-Za-z0-9]{40,}+"),
    ("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{30,}+"),
    ("replicate-token", "r8_", r"r8_[A-Za-z0-9]{30,}+"),
    ("npm-token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    ("pypi-token", "pypi-", r"pypi-[A-Za-z0-9_-]{50,}+"),
    ("sendgrid-key", "sg.", r"SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"),
    ("mailgun-key", "key-", r"key-[0-9a-f]{32}"),
    ("mailchimp-key", "-us", r"[0-9a-f]{32}-us\d{1,2}"),
    ("twilio-key", "sk0 sk1 sk2 sk3 sk4 sk5 sk6 sk7 sk8 sk9 ska skb skc skd ske skf", r"SK[0-9a-f]{32}"),
    ("digitalocean-token", "_v1_", r"do[oprt]_v1_[0-9a-f]{64}"),
    ("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    ("square-token", "sq0", r"sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}+"),
    ("databricks-token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    ("docker-token", "dckr_", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}+"),
    ("vault-token", "hvs. hvb.", r"hv[sb]\.[A-Za-z0-9_-]{24,}+"),
    ("grafana-token", "glsa_ glc_", r"glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_[A-Za-z0-9+/]{32,}+={0,2}"),
    ("newrelic-key", "nrak-", r"NRAK-[A-Z0-9]{27}"),
    ("notion-token", "ntn_ secret_", r"ntn_[A-Za-z0-9]{40,}+|secret_(?=[A-Za-z]*\d)[A-Za-z0-9]{43}"),
    ("linear-key", "lin_api_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}+"),
    ("atlassian-token", "atatt3", r"ATATT3[A-Za-z0-9_=-]{50,}+"),
    ("airtable-token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("tavily-key", "tvly-", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{24,}+"),
    ("figma-token", "figd_", r"figd_[A-Za-z0-9_-]{36,}+"),
    ("supabase-token", "sbp_ sb_secret_", r"sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{20,}+"),
    ("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_-]{32,}+"),
    ("fly-token", "fm1 fm2_", r"fm(?:2_|1[ar]_)[A-Za-z0-9+/=_,]{40,}+"),
    ("doppler-token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{1,64}\.)?[A-Za-z0-9]{40,}+"),
    ("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}+"),
    ("rubygems-key", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    ("pulumi-token", "pul-", r"pul-[0-9a-f]{40}"),
    ("sonar-token", "sqp_ squ_ sqa_", r"sq[pua]_[0-9a-f]{40}"),
    ("postman-key", "pmak-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("facebook-token", "eaa", r"EAA[A-Za-z0-9]{90,}+"),
    ("age-key", "age-secret-key-", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    ("jwt", "eyj", r"eyJ[A-Za-z0-9_-]{10,}+\.eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+"),
)
"""Secrets that are recognised by their own form: kind, hints, pattern."""
_TOKENS = tuple(
    # Masked to the end of the word; another word may begin before it only where it ends there, too, as in a diff.
    Rule(
        kind,
        tuple(hints.split()),
        rf"(?<![A-Za-z0-9])(?<![A-Za-z0-9][_-])(?:{pattern})(?![A-Za-z0-9])[A-Za-z0-9_-]*+",
        is_word=True,
    )
    for kind, hints, pattern in _KINDS
)

_STANDS_FOR = frozenset(
    # A list of words reads better as words.
    """password passwd passphrase pass pwd secret token key apikey api_key credentials value string text none null nil
    true false undefined optional required example sample test testing dummy fake foobar changeme change_me changeit
    replaceme replace_me placeholder todo tbd redacted hidden removed masked admin root user username guest postgres
    mysql mongo redis rabbitmq mypassword mysecret mysecretpassword yourpassword your_password your-password hunter2
    str bytes int bool self this config settings environ getenv input prompt stdin not-needed none-needed not_needed
    unused ignored empty ollama lm-studio include same-origin omit""".split()  # noqa: SIM905
)
_SAME_SIGN = r"([^A-Za-z0-9])\1*+|[xX*.]++|(.)\2{3,}+"
_IN_CODE = (
    # A name in code, a call, a field; a template, a format, an escape of a pattern; something in brackets as a whole.
    r"^[$@&]\w+\)?$|^[$@]?\{|^[$@]\(|^\((?!.*\)$)|^[A-Za-z_$][\w.$]*+[(\[{](?:.*[)\]}([{][\w.()\[\]]*+)?[,;:]?$"
    r"|^<.*>$|^\[.*\]$|[${]\{|\{\w*\}|^%[s(]|%\(\w|\\(?:[wdsDSbB](?![A-Za-z0-9])|[.+*?(){}|^$\[\]])|^[A-Za-z]:\\|<\w+>"
    r"|^(?:os|process|self|settings|config|secrets|args|options|env)\."
)
_PATH = r"[~.]{0,2}/[\w.@+/-]*|[\w.@+-]+(?:/[\w.@+-]+)*\.(?:key|pem|crt|pub|p12|pfx)"
_EXAMPLE = (
    r"(?i)^(?:your|my|the|some|an?|insert|enter|put|replace)[-_ ]\w\w|example|placeholder|[-_]here$|change.?me|^<|xxxx"
)

SHORTENED_CHARS = 12
"""The most that is shown of a secret that was cut short on purpose."""
_REFERENCE = r"(?i)[a-z+]+://[^:@\s]+$|arn:|projects/|kv/|secrets?/|!\w"
"""Where a secret is kept: an address without a password, a path of a vault or of a cloud's secret manager."""


def _stands_for_a_secret(value: str) -> bool:
    """Whether a value is a name, a placeholder or a piece of code rather than the secret itself."""
    bare = _bare(value)
    return (
        bare.lower() in _STANDS_FOR
        or re.fullmatch(_SAME_SIGN, bare) is not None
        or re.search(_IN_CODE, bare) is not None
        or re.fullmatch(_PATH, bare) is not None
        or re.search(_EXAMPLE, bare) is not None
        or re.match(_REFERENCE, bare) is not None
        # The name of a constant, such as a kind of token.
        or (bare.isalpha() and bare.isupper())
        or (value.endswith(("...", "…")) and len(bare) < SHORTENED_CHARS)
    )


def _bare(value: str) -> str:
    """A value without what ends a sentence, and without the brackets around the whole of it."""
    bare = value.strip("\"'`.,;:!?…")
    return bare[1:-1] if bare[:1] + bare[-1:] == "()" else bare


def _is_plain_word(value: str) -> bool:
    """The same for prose, where what follows "password" is mostly the next word of a sentence."""
    bare = _bare(value)
    kinds = sum(any(map(of_kind, bare)) for of_kind in (str.isdigit, str.islower, str.isupper, _is_sign))
    return kinds < 2 or not any(not sign.isalpha() for sign in bare) or _stands_for_a_secret(value)


def _is_sign(sign: str) -> bool:
    return not sign.isalnum() and sign not in "-_"


def _after(words: str, end: str) -> str:
    return "(?:" + "|".join(f"(?<={word}{end})" for word in words.split()) + ")"


_OF_KEYS = "api access auth private signing encryption master client"
_OF_PASSES = (
    # The end of a name is enough: a scanner takes udo with its first letter for a call of that program.
    "db database smtp mail imap ftp user root admin su become ssh login proxy ldap vpn wifi udo redis mysql pg"
)
# The end of a setting's name. What begins with one sign of a few is looked for ten times as fast.
_NAMES = (
    r"[PpSsTtKk_-](?i:(?<=p)(?:assw(?:or)?d|assphrase|wd)|(?<=s)ecret(?:[-_]?(?:key|access[-_]?key))?|(?<=t)oken"
    rf"|{_after(_OF_PASSES, '_')}pass|{_after(_OF_KEYS, '[-_]')}key|{_after(_OF_KEYS, 'k')}ey)"
)
_WHOLE_NAME = (
    r"(?i:[a-z]{1,20}[-_ ]){0,3}(?i:pass(?:w(?:or)?d|phrase)?|pwd|secret|token|(?:api|access|secret|private)[-_ ]?key)"
)


def _quoted(name: str, quote: str) -> str:
    part = rf"[^{quote}\\\n]{{0,1024}}+(?:\\.[^{quote}\\\n]{{0,1024}}+){{0,64}}+"
    within = rf"(?=(?:[^{quote}\\\n]|\\.|{quote}(?=\w)){{6}}){part}(?:{quote}(?=\w){part}){{0,4}}+"
    return rf"{quote}(?P<{name}>{within})(?:{quote}|$)"


# The value of a setting: in quotes to the next one that ends a word, otherwise to the next blank, but not over the next
# setting or tag.
_VALUE = (
    f"(?:{_quoted('double', chr(34))}|{_quoted('single', chr(39))}"
    r"|(?=[^\sA-Za-z]{0,200}+[A-Za-z])(?=[^\s0-9!$%^&*+/=~#@\\-]{0,200}+[0-9!$%^&*+/=~#@\\-])"
    r"(?P<bare>(?!\[redacted:)"
    r"(?:(?![,;&?][A-Za-z_][\w.-]{0,40}=|[,;](?:[\s\"'{\[]|$)|</)[^\s\"']|(?<=[^\s\"'=:])[\"'](?=\w)){8,1024}+))"
)
_CONTEXTS = (
    Rule(
        "private-key",
        ("private key",),
        (
            r"(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r".*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"
        ),
        is_within_line=False,
    ),
    Rule(
        "slack-webhook",
        ("hooks.slack.com",),
        r"hooks\.slack\.com/(?P<secret>(?:services|workflows|triggers)/[A-Za-z0-9_/+-]{20,}+)",
    ),
    Rule(
        "discord-webhook",
        ("/api/webhooks/",),
        r"discord(?:app)?\.com/api/webhooks/(?P<secret>\d{5,30}/[A-Za-z0-9_-]{30,}+)",
    ),
    Rule(
        "aws-secret",
        ("aws",),
        r"[\s:=\"'>](?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
        before=r"(?i)aws.{0,24}(?:secret|sk).{0,24}$",
    ),
    Rule(
        "azure-key",
        ("accountkey=", "sharedaccesskey="),
        r"(?i)(?:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/]{40,}+={0,2})",
    ),
    Rule(
        PASSWORD,
        ("://",),
        (
            # Not in an address of numbers in brackets, nor behind a port or what stands for one.
            r"(?i)[a-z0-9+.-]://(?!\[)[^\s:/@\"']{0,256}+:"
            r"(?:(?P<secret>[^\s/@\"']{3,1024}+(?:@[^\s/@\"']{0,256}+){0,8})"
            r"|(?!(?:\d{1,5}|[$<{]{0,2}(?:\w{1,40}_)?port[>}]{0,2})/)(?P<slash>[^\s@\"']{3,1024}+))@(?=[\w\[.-])"
        ),
        _stands_for_a_secret,
    ),
    Rule(
        "authorization",
        ("authorization", "bearer "),
        (
            r"(?i)(?:authorization[\"']?\s{0,8}[:=]\s{0,8}[\"']?(?:basic|bearer|token|ssws|apikey)?|\bbearer)\s{1,8}"
            r"(?P<secret>(?=[^\s\"',;\d]*+\d)[A-Za-z0-9+/=._~-]{16,}+)"
        ),
        _stands_for_a_secret,
    ),
    # A setting: DB_PASSWORD=…, "api_key": "…", --token …
    Rule(
        PASSWORD,
        ("passw", "pwd", "_pass", "secret", "key", "token", "credential", "passphrase"),
        (
            rf"{_NAMES}(?i:[-_.](?:base|prod|production|staging|dev|live|test|\d{{1,4}}))?[\"']?"
            rf"\s{{0,8}}(?::=|=>|[:=])\s{{0,8}}{_VALUE}"
        ),
        _stands_for_a_secret,
    ),
    # An option, an element, the cell of a table: --password …, <password>…, | password | …
    Rule(
        PASSWORD,
        ("passw", "pwd", "_pass", "secret", "key", "token", "passphrase"),
        (
            rf"[<|-](?:(?<=-)-{_WHOLE_NAME}\s{{1,8}}(?!(?:id|source|src|type|target|env)=)"
            rf"|(?<=<){_WHOLE_NAME}>(?=[^<>\s]{{4,1024}}</)"
            rf"|(?<=\|)\s{{0,40}}{_WHOLE_NAME}:?\s{{0,40}}\|\s{{0,40}}(?=[^\s|]{{0,200}}[0-9!$%^&*+=~#@])){_VALUE}"
        ),
        _is_plain_word,
    ),
    # A block of YAML.
    Rule(
        PASSWORD,
        tuple(f"{mark}{kept}\n" for mark in "|>" for kept in ("", "-", "+")),
        rf"{_NAMES}[\"']?:[ \t]{{0,8}}[|>][-+]?\n[ \t]{{1,40}}(?P<secret>\S{{6,1024}}+)",
        _is_plain_word,
        is_within_line=False,
    ),
    # A line of an .env file.
    Rule(
        PASSWORD,
        ("password", "passwd", "_pass", "_pwd", "secret", "_key", "token"),
        (
            r"^\s{0,40}(?:export\s{1,8})?[A-Z][A-Z0-9_]{0,80}"
            r"(?:PASSWORD|PASSWD|(?<!ONE)(?<!TWO)(?<!FIRST)(?<!SINGLE)(?<!MULTI)_PASS|_PWD|SECRET|_KEY|TOKEN)"
            r"(?:_[A-Z0-9]{1,20})?=(?P<secret>[^\s\"'#]{6,1024}+)\s*+$"
        ),
        _stands_for_a_secret,
    ),
    # A sentence: "the password is …", "my pin code: …"; not one about managers, fields and policies of passwords.
    Rule(
        PASSWORD,
        (
            *("password", "passwd", "passphrase", "passcode", "token", "api key", "secret", "pw"),
            *("passwort", "contraseña", "mot de passe", "senha", "wachtwoord", "пароль", "密码", "密碼", "パスワード"),
        ),
        (
            r"(?i)(?:\b(?:password|passwd|passphrase|passcode|token|api[ -]key|secret|pw|passwort|contraseña"
            r"|mot de passe|senha|wachtwoord|пароль)s?\b|密码|密碼|パスワード)"
            r"(?!(?<=--secret)\s)"
            r"(?!\s(?:managers?|fields?|polic(?:y|ies)|generators?|prompts?|resets?|budgets?|stores?|rotation|plugins?)\b)"
            r"(?:\s{1,3}[\w,'’()]{1,24}+){0,7}?\s{0,4}(?:\b(?:is|to|ist|lautet|es|est|é)\b|是|は|:|：|=|→|->)\s{0,8}"
            r"(?:\"(?P<double>[^\s\"]{6,1024}+)|'(?P<single>[^\s']{6,1024}+)|`?(?P<bare>[^\s\"'`]{6,1024}+))"
        ),
        _is_plain_word,
    ),
    # A command: curl -u name:…, sshpass -p …, mysql -p…
    Rule(
        PASSWORD,
        ("curl", "wget"),
        (
            r"\s(?:-u|--user|--password)[ =]{0,4}[\"']?(?!\[redacted:)(?:[^\s:\"']{0,128}:)?"
            r"(?P<secret>[^\s\"'-](?:[^\s\"']|[\"'](?=\w)){3,1024}+)"
        ),
        _stands_for_a_secret,
        before=r"(?:curl|wget)\b",
    ),
    Rule(
        PASSWORD,
        ("sshpass",),
        r"\bsshpass\s{1,4}-p\s{0,4}[\"']?(?P<secret>[^\s\"'-](?:[^\s\"']|[\"'](?=\w)){3,1024}+)",
        _stands_for_a_secret,
    ),
    Rule(
        PASSWORD,
        ("mysql", "mariadb"),
        r"\s-p(?!\d{1,5}(?:[:/\s]|$))(?P<secret>[^\s\"'-](?:[^\s\"']|[\"'](?=\w)){3,1024}+)",
        _stands_for_a_secret,
        before=r"(?:mysql|mariadb)\w{0,9}\b.{0,80}$",
    ),
    # A statement of SQL that makes a login, or a sentence like it: with password '…', identified by '…'.
    Rule(
        PASSWORD,
        ("password", "identified"),
        (
            r"(?i)\b(?:(?:user|role|with)\s{1,8}+(?:\w{1,63}+\s{1,8}+){0,6}?password"
            r"|identified\s{1,8}+(?:with\s{1,8}+\S{1,64}+\s{1,8}+)?by)"
            r"\s{1,8}+E?'(?P<secret>[^'\n]{4,1024}+)'"
        ),
        _stands_for_a_secret,
    ),
    # A line of a .netrc file.
    Rule(
        PASSWORD,
        ("machine ",),
        r"\bmachine\s{1,20}\S{1,255}+\s{1,20}login\s{1,20}\S{1,255}+\s{1,20}password\s{1,20}(?P<secret>\S{4,1024}+)",
        _stands_for_a_secret,
        is_within_line=False,
    ),
    Rule(
        "private-key",
        ("private-lines:",),
        r"Private-Lines: \d{1,5}\s{1,4}(?P<secret>[A-Za-z0-9+/=]{32,}+(?:\s{1,4}[A-Za-z0-9+/=]{16,}+)*+)",
        is_within_line=False,
    ),
    Rule(
        "webhook",
        ("hooks.zapier.com", "webhook.office.com"),
        r"(?:hooks\.zapier\.com/hooks/catch|webhook\.office\.com/webhookb2)/(?P<secret>[\w@/-]{8,}+)",
    ),
    # Whoever has such an address has what it leads to.
    Rule(
        "signed-url",
        ("-signature=", "sig="),
        r"(?i)[?&](?:X-(?:Amz|Goog)-Signature|sig)=(?P<secret>[A-Za-z0-9%+/_-]{40,}+={0,2})",
    ),
)
RULES = (*_CONTEXTS[:1], *_TOKENS, *_CONTEXTS[1:])
MASK_START = "[redacted:"
MOST_ROUNDS = 4
"""A mask may let something be seen that was hidden in what it took away; a text is hardly ever searched twice."""


class RuleSet(NamedTuple):
    """Rules, and all their hints: each is looked for once in a text."""

    rules: tuple[Rule, ...]
    hints: tuple[str, ...]

    @classmethod
    def of(cls, rules: Iterable[Rule]) -> RuleSet:
        """These rules."""
        told = tuple(rules)
        return cls(told, tuple(dict.fromkeys(hint for rule in told for hint in rule.hints)))


class Masker:
    """Masks what its rules find."""

    def __init__(self, rules: Sequence[Rule] = RULES) -> None:
        contexts = RuleSet.of(rule for rule in rules if not rule.is_word)
        # With a long word, and without one.
        self._rules = RuleSet.of(rules), contexts
        self._words = RuleSet.of(rule for rule in rules if rule.is_word), RuleSet((), ())
        self._contexts = contexts, contexts

    def mask(self, text: str) -> Masked:
        """The text with `[redacted:kind]` in place of each secret; masking it again changes nothing."""
        counts: Counter[str] = Counter()
        read = cache(undressed)
        for _ in range(MOST_ROUNDS):
            before = text
            seen = read(text, joint="")
            if seen.text is text:
                return Masked(_without(text, Undressed, self._rules, counts), counts)
            joints = ("", " ") if seen.has_joints else ("",)
            # A whole token before a part of one; a password as it was typed before it is read in another way.
            for joint in joints:
                text = _without(text, partial(read, joint=joint), self._words, counts)
            text = _without(text, Undressed, self._rules, counts)
            for joint in joints:
                text = _without(text, partial(read, joint=joint), self._contexts, counts)
            if text == before:
                break
        return Masked(text, counts)

    def mask_all(self, value: Any, counts: Counter[str]) -> Any:
        """A value of JSON with every text in it masked; adds what was found to `counts`."""
        if isinstance(value, str):
            masked = self.mask(value)
            counts.update(masked.counts)
            return masked.text
        if isinstance(value, Mapping):
            return {key: self._named(str(key), each, counts) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.mask_all(each, counts) for each in value]
        return value

    def _named(self, name: str, value: Any, counts: Counter[str]) -> Any:
        """A value with its name, which may be what tells that it is a secret."""
        if isinstance(value, str):
            masked = self.mask(f"{name}: {value}")
            if masked.text.startswith(f"{name}: "):
                counts.update(masked.counts)
                return masked.text[len(name) + 2 :]
        return self.mask_all(value, counts)


def _without(text: str, read: Callable[[str], Undressed], choice: tuple[RuleSet, RuleSet], counts: Counter[str]) -> str:
    """The text with what some rules find in one way to read it masked."""
    seen = read(text)
    rules = choice[0 if re.search(_LONG_WORD, seen.text) else 1]
    lowered = seen.text.lower()
    present = {hint for hint in rules.hints if hint in lowered}
    for rule in rules.rules:
        if not rule.hints or not present.isdisjoint(rule.hints):
            pieces: list[str] = []
            at = 0
            for start, end in _found(seen.text, rule):
                begin, stop = seen.span(start, end)
                if begin >= at:
                    pieces += [text[at:begin], MASK_START, rule.kind, "]"]
                    at = stop
                    counts[rule.kind] += 1
            if pieces:
                text = "".join([*pieces, text[at:]])
                seen = read(text)
    return text


def _has_hint(rule: Rule, lowered: str) -> bool:
    return not rule.hints or any(hint in lowered for hint in rule.hints)


def _found(text: str, rule: Rule) -> Iterator[tuple[int, int]]:
    """From where to where a text has secrets of one kind."""
    if not rule.is_within_line:
        yield from _found_in(text, rule)
        return
    at = 0
    for line in text.split("\n"):
        if _has_hint(rule, line.lower()):
            for start, end in _found_in(line, rule):
                yield at + start, at + end
        at += len(line) + 1


def _found_in(part: str, rule: Rule) -> Iterator[tuple[int, int]]:
    pattern = _compiled(rule.pattern)
    names = list(pattern.groupindex)
    judged: dict[str, bool] = {}
    for found in pattern.finditer(part):
        start, end = found.span(next((name for name in names if found[name] is not None), 0))
        secret = part[start:end]
        if secret not in judged:
            judged[secret] = bool(secret) and MASK_START not in secret and not rule.is_placeholder(secret)
        place = found.start() + 1
        if judged[secret] and _compiled(rule.before).search(part, max(0, place - BEFORE_CHARS), place):
            yield start, end


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """When it is first looked for: whoever loads the package does not wait for forty."""
    return re.compile(pattern)


NOTHING = Masker(())
"""Leaves every text as it is."""


@cache
def masker_for(wanted: bool | tuple[tuple[str, str], ...]) -> Masker:
    """What masks secrets as the operator wants it: not at all, by our rules, or by kinds of their own beside these."""
    own = wanted if isinstance(wanted, tuple) else ()
    rules = (Rule(kind, (), pattern, is_within_line=False) for kind, pattern in own)
    return Masker((*RULES, *rules)) if wanted else NOTHING


def masked(text: str) -> str:
    """The text with a mask in place of whatever looks like a secret."""
    return masker_for(True).mask(text).text
