"""Which texts hold secrets, and which only look as if they did."""

from __future__ import annotations

import base64
import random
import string
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import testing
from hermes_memory_pgvector.text.secrets import Masker, masked, masker_for

BENIGN = (Path(testing.__file__).parent / "benign_lines.txt").read_text(encoding="utf-8").splitlines()
LETTERS = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + "234567"
HEX = "0123456789abcdef"
_random = random.Random(17)


def some(alphabet: str, length: int) -> str:
    """Random characters, a digit among them."""
    return "".join(_random.choices(alphabet, k=length - 1)) + "7"


def _jwt() -> str:
    parts = [b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890","name":"Dana"}']
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "." + some(LETTERS, 43)


def _pem(name: str) -> str:
    lines = "\n".join(some(LETTERS, 64) for _ in range(6))
    return f"-----BEGIN {name}-----\n{lines}\n-----END {name}-----"


# The kind, the secret itself, and how it stands in a text.
PLANTED: list[tuple[str, str, str]] = [
    (kind, secret, text.format(secret))
    for kind, secret, text in [
        ("aws-key", "AKIA" + some(UPPER, 16), "the deploy user's key is {}, rotate it"),
        ("aws-key", "ASIA" + some(UPPER, 16), "AWS_ACCESS_KEY_ID={}"),
        ("aws-secret", some(LETTERS, 20) + "/" + some(LETTERS, 19), "aws_secret_access_key = {}"),
        ("aws-secret", some(LETTERS, 40), "AWS_SECRET_ACCESS_KEY={}\nAWS_REGION=eu-central-1"),
        ("google-key", "AIza" + some(LETTERS, 35), "https://maps.googleapis.com/maps/api/js?key={}"),
        ("google-oauth", "GOCSPX-" + some(LETTERS, 28), "client secret {}"),
        ("google-oauth", "ya29." + some(LETTERS, 60), "access {}"),
        ("github-token", "ghp_" + some(LETTERS, 36), "git clone https://x:{}@github.com/acme/site"),
        ("github-token", "gho_" + some(LETTERS, 36), "export GH_TOKEN={}"),
        ("github-token", "github_pat_" + some(LETTERS, 22) + "_" + some(LETTERS, 59), "use {} for the release"),
        ("gitlab-token", "glpat-" + some(LETTERS, 20), "GITLAB: {}."),
        ("gitlab-token", "glrt-" + some(LETTERS, 24), "runner token {}"),
        ("slack-token", "xoxb-123456789012-1234567890123-" + some(LETTERS, 24), "slack bot: {}"),
        ("slack-token", "xoxp-123456789012-" + some(LETTERS, 24), "({})"),
        (
            "slack-webhook",
            f"services/T{some(UPPER, 8)}/B{some(UPPER, 8)}/{some(LETTERS, 24)}",
            "https://hooks.slack.com/{}",
        ),
        ("discord-webhook", f"112233445566778899/{some(LETTERS, 68)}", "https://discord.com/api/webhooks/{}"),
        ("discord-token", f"M{some(LETTERS, 25)}.{some(LETTERS, 6)}.{some(LETTERS, 38)}", "bot token is {}"),
        ("telegram-token", "123456789:AA" + some(LETTERS, 33), "TELEGRAM_BOT_TOKEN={}"),
        ("telegram-token", "1234567890:AA" + some(LETTERS, 33), 'POST https://api.telegram.org/bot{}/getMe "200 OK"'),
        ("telegram-token", "123456789:AA" + some(LETTERS, 33), "https://api.telegram.org/file/bot{}/photos/1.jpg"),
        ("stripe-key", "sk_live_" + some(LETTERS, 24), "stripe.api_key = '{}'"),
        ("stripe-key", "rk_test_" + some(LETTERS, 24), "{}"),
        ("stripe-key", "whsec_" + some(LETTERS, 32), "endpoint secret {}"),
        ("anthropic-key", "sk-ant-api03-" + some(LETTERS, 80), "ANTHROPIC_API_KEY={}"),
        ("openai-key", "sk-proj-" + some(LETTERS, 48), "OpenAI key {} works"),
        ("openai-key", "sk-" + some(LETTERS, 48), "client = OpenAI(api_key='{}')"),
        ("openai-key", "sk-or-v1-" + some(HEX, 64), "openrouter: {}"),
        ("huggingface-token", "hf_" + some(LETTERS, 34), "huggingface-cli login --token {}"),
        ("groq-key", "gsk_" + some(LETTERS, 52), "groq {}"),
        ("xai-key", "xai-" + some(LETTERS, 80), "xai: {}"),
        ("perplexity-key", "pplx-" + some(LETTERS, 48), "key {}"),
        ("replicate-token", "r8_" + some(LETTERS, 37), "REPLICATE_API_TOKEN={}"),
        ("npm-token", "npm_" + some(LETTERS, 36), "//registry.npmjs.org/:_authToken={}"),
        ("pypi-token", "pypi-AgEIcHlwaS5vcmc" + some(LETTERS, 120), "password = {}"),
        ("sendgrid-key", "SG." + some(LETTERS, 22) + "." + some(LETTERS, 43), "mail through {}"),
        ("mailgun-key", "key-" + some(HEX, 32), "api:{}"),
        ("mailchimp-key", some(HEX, 32) + "-us14", "newsletter {}"),
        ("twilio-key", "SK" + some(HEX, 32), "twilio {}"),
        ("digitalocean-token", "dop_v1_" + some(HEX, 64), "doctl auth init -t {}"),
        ("shopify-token", "shpat_" + some(HEX, 32), "shop {}"),
        ("databricks-token", "dapi" + some(HEX, 32), "databricks {}"),
        ("docker-token", "dckr_pat_" + some(LETTERS, 27), "docker login -u acme -p {}"),
        ("vault-token", "hvs." + some(LETTERS, 90), "VAULT_TOKEN={}"),
        ("grafana-token", f"glsa_{some(LETTERS, 32)}_{some(HEX, 8)}", "grafana {}"),
        ("notion-token", "ntn_" + some(LETTERS, 46), "notion {}"),
        ("linear-key", "lin_api_" + some(LETTERS, 40), "linear {}"),
        ("age-key", "AGE-SECRET-KEY-1" + some(string.ascii_uppercase, 58), "{}"),
        ("jwt", _jwt(), "Cookie: session={}"),
        ("private-key", _pem("RSA PRIVATE KEY"), "here it is:\n{}\nkeep it"),
        ("private-key", _pem("OPENSSH PRIVATE KEY"), "{}"),
        ("private-key", _pem("PRIVATE KEY").rpartition("\n")[0], "cut off: {}"),
        ("azure-key", some(LETTERS, 86) + "==", "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={}"),
        ("password", "Zx9!kq_Lm", "postgresql://app:{}@db.internal:5432/app"),
        ("password", "p%40ssW0rd", "redis://:{}@cache:6379/0"),
        ("password", "s3cr3t-Winter", "https://dana:{}@intranet.example/wiki"),
        ("password", "tR0ub4dor&3", "DB_PASSWORD={}"),
        ("password", "correcthorsebattery", "SMTP_PASSWORD={}"),
        ("password", "blue-Falcon-77", 'password: "{}"'),
        ("password", "q8Vt!2mN", "the wifi password is {}"),
        ("password", "Kestrel#4410", "Remember my password: {}"),
        ("password", "9f8e7d6c5b4a39281706", '"api_key": "{}",'),
        ("authorization", "dXNlcjpwYXNzd29yZDEyMw==", "Authorization: Basic {}"),
        ("authorization", some(LETTERS, 40), "curl -H 'Authorization: Bearer {}' https://api.example"),
        ("password", some(LETTERS, 32), "client_secret={}&grant_type=client_credentials"),
        ("google-key", "AQ.Ab8" + some(LETTERS, 40), "gemini {}"),
        ("tavily-key", "tvly-dev-" + some(LETTERS, 32), "search with {}"),
        ("figma-token", "figd_" + some(LETTERS, 40), "figma {}"),
        ("supabase-token", "sbp_" + some(HEX, 40), "supabase login --token {}"),
        ("planetscale-token", "pscale_tkn_" + some(LETTERS, 43), "{}"),
        ("fly-token", "fm2_" + some(LETTERS, 80), "FlyV1 {}"),
        ("doppler-token", "dp.pt." + some(LETTERS, 43), "doppler {}"),
        ("terraform-token", some(LETTERS, 14) + ".atlasv1." + some(LETTERS, 64), "app.terraform.io {}"),
        ("rubygems-key", "rubygems_" + some(HEX, 48), "gem push with {}"),
        ("pulumi-token", "pul-" + some(HEX, 40), "pulumi {}"),
        ("sonar-token", "sqp_" + some(HEX, 40), "sonar {}"),
        ("postman-key", "PMAK-" + some(HEX, 24) + "-" + some(HEX, 34), "postman {}"),
        ("facebook-token", "EAAC" + some(LETTERS, 120), "graph {}"),
        ("password", "hunter2x9", "DB_PASS={}"),
        ("password", "K9-mordent", "ansible_become_pass: {}"),
        ("password", "Zx9OLeMa61", "mysqldump -u root -p{} shop"),
        ("password", "Tr0ubjoOj37H", "curl -s -u admin:{} https://ci.example.org/api"),
        ("password", "hQ8!yVaQXe", "sshpass -p '{}' ssh root@10.0.0.4"),
        ("password", "rMQSkS3u9I5", "machine api.example.org\nlogin bob\npassword {}\n"),
        ("password", "Gr7n-vBhi", "Das Passwort lautet {}"),
        ("password", "Az9-UyYfK", "la contraseña: {}"),
        ("password", "Abc12345!", "我的密码是 {}"),
        ("password", "S3cure-c2T", "The root pw: {}"),
        ("password", "Zx9OLeMa61", "CREATE USER app WITH LOGIN NOSUPERUSER ENCRYPTED PASSWORD '{}';"),
        ("password", "Zx9!LeMa61", "ALTER ROLE app PASSWORD '{}' VALID UNTIL 'infinity'"),
        ("password", "correcthorse", "CREATE USER 'a'@'%' IDENTIFIED WITH mysql_native_password BY '{}'"),
        ("private-key", some(LETTERS, 64) + "\n" + some(LETTERS, 40), "Private-Lines: 2\n{}\nPrivate-MAC: 00"),
        ("webhook", "12345/" + some(LETTERS, 7), "https://hooks.zapier.com/hooks/catch/{}"),
        ("signed-url", some(HEX, 64), "https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature={}"),
    ]
]


@pytest.mark.parametrize(("kind", "secret", "text"), PLANTED, ids=[f"{n}-{each[0]}" for n, each in enumerate(PLANTED)])
def test_a_secret_is_masked_and_named(kind: str, secret: str, text: str) -> None:
    done = Masker().mask(text)
    assert secret not in done.text
    assert f"[redacted:{kind}]" in done.text
    assert done.counts[kind] == 1
    before, _, after = text.partition(secret)
    assert done.text.startswith(before[: len(before) // 2])
    assert done.text.endswith(after[len(after) // 2 :])


def test_there_are_enough_kinds() -> None:
    assert len(PLANTED) >= 60
    assert len({kind for kind, _, _ in PLANTED}) >= 20


@pytest.mark.parametrize("line", BENIGN)
def test_a_developers_line_stays_as_it_is(line: str) -> None:
    assert masked(line) == line


def test_two_hundred_lines_in_one_text_stay_as_they_are() -> None:
    assert len(BENIGN) >= 200
    assert masked("\n".join(BENIGN)) == "\n".join(BENIGN)


@pytest.mark.parametrize(("kind", "secret", "text"), PLANTED, ids=[f"{n}-{each[0]}" for n, each in enumerate(PLANTED)])
def test_masking_twice_changes_nothing(kind: str, secret: str, text: str) -> None:
    once = masked(text)
    again = Masker().mask(once)
    assert again.text == once
    assert not again.counts


def test_every_secret_of_a_text_is_masked() -> None:
    text = "\n".join(text for _, _, text in PLANTED if "PRIVATE KEY" not in text)
    done = masked(text)
    for _, secret, planted in PLANTED:
        if "PRIVATE KEY" not in planted:
            assert secret not in done


def test_an_operators_rule_masks_too() -> None:
    done = masker_for((("badge", r"BDG-\d{6}"),)).mask("badge BDG-123456 opens the workshop")
    assert done.text == "badge [redacted:badge] opens the workshop"
    assert done.counts == {"badge": 1}


def test_an_operators_rule_may_mask_a_part() -> None:
    assert masker_for((("pin", r"pin (?P<secret>\d{4})"),)).mask("pin 1234").text == "pin [redacted:pin]"


@given(st.text())
def test_any_text_gets_through(text: str) -> None:
    done = masked(text)
    assert masked(done) == done


def test_nothing_is_masked_where_nobody_wants_it() -> None:
    text = PLANTED[0][2]
    assert masker_for(False).mask(text).text == text


def test_a_value_of_metadata_is_a_secret_where_its_name_says_so() -> None:
    counts: Counter[str] = Counter()
    entries = {"api_key": "9f86d081884c7d659a2feaa0c55ad015", "platform": "cli", "more": {"password": "hunter9Winter"}}
    masker = masker_for(True)
    kept = masker.mask_all(entries, counts)
    assert "9f86" not in str(kept)
    assert "hunter9" not in str(kept)
    assert (kept["platform"], sum(counts.values())) == ("cli", 2)
    assert masker.mask_all(kept, Counter()) == kept
