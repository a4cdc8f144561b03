"""Secrets made up while the tests run, and clean text: nothing here is written as a secret is, so that no
scanner of repositories finds one."""

import base64
import hashlib
import random
import string
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stdnum import iban, luhn

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM = LOWER + UPPER + DIGITS
HEX, BASE32, BASE36 = "0123456789abcdef", UPPER + "234567", LOWER + DIGITS
URLSAFE = ALNUM + "_-"
Make = Callable[[random.Random], str]


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of secret. `anywhere`: known by itself, so that it is found wherever it stands."""

    name: str
    make: Make
    anywhere: bool = True

    def __repr__(self) -> str:
        return self.name


def letters(chosen: random.Random, alphabet: str, length: int) -> str:
    """Random, with at least one digit if there are any: names have none."""
    made = [chosen.choice(alphabet) for _ in range(length)]
    if set(alphabet) & set(DIGITS):
        made[chosen.randrange(length)] = chosen.choice([one for one in alphabet if one in DIGITS])
    return "".join(made)


def of(*parts: str | tuple[str, int]) -> Make:
    """Text as it is, without its `|`, which keeps it apart in this file only; and so many of an alphabet."""
    return lambda chosen: "".join(
        part.replace("|", "") if isinstance(part, str) else letters(chosen, *part) for part in parts
    )


def jwt(chosen: random.Random) -> str:
    parts = ('{"alg":"HS256","typ":"JWT"}', f'{{"sub":"{chosen.randrange(10**9)}","admin":true}}')
    spelt = [base64.urlsafe_b64encode(part.encode()).rstrip(b"=").decode() for part in parts]
    return ".".join([*spelt, letters(chosen, URLSAFE, 43)])


def private_key(chosen: random.Random) -> str:
    lines = [letters(chosen, ALNUM + "+/", 64) for _ in range(6)]
    mark = "-" * 5
    kind = chosen.choice(["", "RSA ", "EC ", "OPENSSH "]) + "PRIVATE KEY"
    return "\n".join([f"{mark}BEGIN {kind}{mark}", *lines, f"{mark}END {kind}{mark}"])


def card(chosen: random.Random) -> str:
    head, length = chosen.choice(
        [("4", 16), ("51", 16), ("2221", 16), ("34", 15), ("6011", 16), ("3530", 16)]
    )
    while True:
        body = head + letters(chosen, DIGITS, length - len(head) - 1)
        number = body + luhn.calc_check_digit(body)
        if len(set(number)) > 3:
            return number


def spaced_card(chosen: random.Random) -> str:
    number = card(chosen)
    between = chosen.choice(" -")
    cuts = (4, 10) if len(number) == 15 else (4, 8, 12)
    parts = [number[a:b] for a, b in zip((0, *cuts), (*cuts, len(number)), strict=True)]
    return between.join(parts)


def account(chosen: random.Random) -> str:
    country, length = chosen.choice([("DE", 18), ("AT", 16), ("NL", 0), ("GB", 0), ("ES", 20)])
    if country in ("NL", "GB"):
        body = letters(chosen, UPPER, 4) + letters(chosen, DIGITS, 10 if country == "NL" else 14)
    else:
        body = letters(chosen, DIGITS, length)
    number = country + iban.calc_check_digits(f"{country}00{body}") + body
    return chosen.choice([number, iban.format(number)])


SELF_EVIDENT = [
    Format("aws-access-key-id", of("AK|IA", (BASE32, 16))),
    Format("aws-temporary-key-id", of("AS|IA", (BASE32, 16))),
    Format("azure-client-secret", lambda r: letters(r, ALNUM, 3) + "8Q" + "~" + letters(r, ALNUM + "_-", 34)),
    Format("gcp-api-key", of("AI|za", (URLSAFE, 35))),
    Format("gcp-oauth", of("ya|29.", (URLSAFE, 60))),
    Format("google-client-secret", of("GOC|SPX-", (URLSAFE, 28))),
    Format("github-pat", of("gh|p_", (ALNUM, 36))),
    Format("github-oauth", of("gh|o_", (ALNUM, 36))),
    Format("github-app", of("gh|s_", (ALNUM, 36))),
    Format("github-fine-grained", of("github|_pat_", (ALNUM, 22), "_", (ALNUM, 59))),
    Format("gitlab-pat", of("gl|pat-", (URLSAFE, 20))),
    Format("gitlab-runner", of("gl|rt-", (URLSAFE, 20))),
    Format("slack-bot", of("xo|xb-", (DIGITS, 12), "-", (DIGITS, 12), "-", (ALNUM, 24))),
    Format(
        "slack-webhook",
        of(
            "https://hooks.sl|ack.com/services/T",
            (UPPER + DIGITS, 10),
            "/B",
            (UPPER + DIGITS, 10),
            "/",
            (ALNUM, 24),
        ),
    ),
    Format("stripe-live", of("sk|_live_", (ALNUM, 24))),
    Format("stripe-restricted", of("rk|_live_", (ALNUM, 24))),
    Format("stripe-webhook", of("wh|sec_", (ALNUM, 32))),
    Format("openai-project", of("sk|-proj-", (URLSAFE, 48))),
    Format("openai", of("sk|-", (ALNUM, 20), "T3Blbk|FJ", (ALNUM, 20))),
    Format("anthropic", of("sk|-ant-api03-", (URLSAFE, 93), "AA")),
    Format("openrouter", of("sk|-or-v1-", (HEX, 64))),
    Format("huggingface", lambda r: "hf" + "_" + letters(r, LOWER, 17) + letters(r, UPPER, 17)),
    Format("groq", of("gsk|_", (ALNUM, 52))),
    Format("replicate", of("r8|_", (ALNUM, 37))),
    Format("npm", of("npm|_", (ALNUM, 36))),
    Format("pypi", of("pypi|-AgEIcHlwaS5vcmc", (URLSAFE, 70))),
    Format("rubygems", of("rubygems|_", (HEX, 48))),
    Format("docker", of("dckr|_pat_", (URLSAFE, 27))),
    Format("digitalocean", of("dop|_v1_", (HEX, 64))),
    Format("shopify", of("shp|at_", (HEX, 32))),
    Format("sendgrid", of("SG|.", (URLSAFE, 22), ".", (URLSAFE, 43))),
    Format("mailgun", of("key|-", (HEX, 32))),
    Format("mailchimp", of((HEX, 32), "-us14")),
    Format("twilio", of("S|K", (HEX, 32))),
    Format("telegram", of((DIGITS, 9), ":A|A", (URLSAFE, 33))),
    Format("discord-bot", of("M", (ALNUM, 23), ".G", (URLSAFE, 5), ".", (URLSAFE, 27))),
    Format("postman", of("PM|AK-", (HEX, 24), "-", (HEX, 34))),
    Format("databricks", of("da|pi", (HEX, 32))),
    Format("grafana-service", of("gl|sa_", (ALNUM, 32), "_", (HEX, 8))),
    Format("grafana-cloud", of("gl|c_", (ALNUM, 40))),
    Format("vault-service", of("hv|s.", (URLSAFE, 90))),
    Format("doppler", of("dp|.pt.", (ALNUM, 43))),
    Format("linear", of("lin|_api_", (ALNUM, 40))),
    Format("airtable", of("pa|t", (ALNUM, 14), ".", (HEX, 64))),
    Format("figma", of("fig|d_", (URLSAFE, 40))),
    Format("atlassian", of("ATA|TT3", (URLSAFE, 120))),
    Format("planetscale", of("psc|ale_tkn_", (ALNUM, 43))),
    Format("supabase", of("sb|p_", (HEX, 40))),
    Format("square", of("sq|0atp-", (URLSAFE, 22))),
    Format("newrelic", of("NR|AK-", (UPPER + DIGITS, 27))),
    Format("sentry-user", of("sn|tryu_", (HEX, 64))),
    Format("prefect", of("pn|u_", (BASE36, 36))),
    Format("readme", of("rd|me_", (BASE36, 70))),
    Format("brevo", of("xkey|sib-", (HEX, 64), "-", (ALNUM, 16))),
    Format("plaid", lambda r: "access-" + "production-" + str(uuid.UUID(int=r.getrandbits(128)))),
    Format("age", of("AGE-SEC|RET-KEY-1", ("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58))),
    Format("1password", lambda r: "A3-" + "-".join(letters(r, UPPER + DIGITS, n) for n in (6, 11, 5, 5, 5))),
    Format("jwt", jwt),
    Format("private-key", private_key),
    Format("uri", lambda r: f"postgres://app:{letters(r, ALNUM, 16)}@db7.internal/main"),
]
ANNOUNCED = [
    Format("generic-token", lambda r: f'api_token = "{letters(r, BASE36, 32)}"', anywhere=False),
    Format("generic-key", lambda r: f"API_KEY={letters(r, ALNUM, 24)}", anywhere=False),
    Format("generic-secret", lambda r: f"client_secret: '{letters(r, URLSAFE, 40)}'", anywhere=False),
    Format("generic-json", lambda r: f'{{"accessToken": "{letters(r, ALNUM, 40)}"}}', anywhere=False),
    Format("aws-secret", lambda r: f"aws_secret_access_key = {letters(r, ALNUM + '+/', 40)}", anywhere=False),
    Format(
        "password", lambda r: f"Password: {letters(r, LOWER, 5)}{letters(r, DIGITS, 4)}!Q", anywhere=False
    ),
    Format(
        "word-and-year",
        lambda r: f"password = {r.choice(['Sommer', 'Winter', 'Berlin'])}20{r.randint(10, 30)}",
        False,
    ),
    Format("bearer", lambda r: f"Authorization: Bearer {letters(r, ALNUM, 40)}", anywhere=False),
    Format(
        "basic",
        lambda r: "authorization: Basic " + base64.b64encode(r.randbytes(24)).decode(),
        anywhere=False,
    ),
    Format(
        "azure-storage",
        lambda r: "AccountKey" + "=" + base64.b64encode(r.randbytes(64)).decode(),
        anywhere=False,
    ),
]
NUMBERS = [
    Format("card", card, anywhere=False),
    Format("card-in-groups", spaced_card, anywhere=False),
    Format("iban", account, anywhere=False),
]
AROUND = (
    "{}",
    "key={}",
    '{{"value": "{}"}}',
    "export THING='{}'",
    "see {} for more",
    "| name | {} |",
    "https://example.org/?k={}&x=1",
    "({})",
    "config: {},",
    "{}\nnext line",
)


def positives(seed: int, each: int) -> Iterator[tuple[str, str]]:
    """Kind and text of secrets in the places where one finds them."""
    chosen = random.Random(seed)
    for kind in [*SELF_EVIDENT, *ANNOUNCED, *NUMBERS]:
        for _ in range(each):
            yield kind.name, chosen.choice(AROUND).format(kind.make(chosen))


SENTENCE = """the of and to a in is it you that he was for on are with as his they be at one have this from
or had by password token secret key login account order invoice shipping reset change access public settings
card"""
WORDS = SENTENCE.split()


def clean_lines(seed: int, count: int) -> Iterator[str]:
    """What pages are full of: prose, code, identifiers, hashes, numbers, pictures."""
    chosen = random.Random(seed)
    kinds = CLEAN
    for number in range(count):
        yield kinds[number % len(kinds)](chosen)


def _prose(chosen: random.Random) -> str:
    return " ".join(chosen.choice(WORDS) for _ in range(12)).capitalize() + "."


CLEAN: tuple[Make, ...] = (
    _prose,
    lambda r: f"  def {r.choice(WORDS)}_{r.choice(WORDS)}(self, token: str, key: int = {r.randint(0, 9)}):",
    lambda r: (
        f"token = request.headers.get('X-{r.choice(WORDS).title()}') or settings.API_KEY_{r.randint(1, 9)}"
    ),
    lambda r: f"password = hash_password(form.{r.choice(WORDS)}, rounds={r.randint(10, 14)})",
    lambda r: (
        f"Your password must have {r.randint(8, 20)} characters, and expires in {r.randint(30, 90)} days."
    ),
    lambda r: f"request id: {uuid.UUID(int=r.getrandbits(128))}",
    lambda r: f"sha256:{r.randbytes(32).hex()}",
    lambda r: f"commit {hashlib.sha1(r.randbytes(9)).hexdigest()}",  # noqa: S324 - as git writes them
    lambda r: f'integrity="sha384-{base64.b64encode(r.randbytes(48)).decode()}"',
    lambda r: f'"integrity": "sha512-{base64.b64encode(r.randbytes(64)).decode()}"',
    lambda r: (
        f"2026-0{r.randint(1, 9)}-1{r.randint(0, 9)}T08:{r.randint(10, 59)}:00.{r.randint(0, 999999):06}Z"
    ),
    lambda r: f"at {r.randint(1_600_000_000_000, 1_900_000_000_000)} ms, {r.randint(10**15, 2 * 10**15)} us",
    lambda r: f"Order no. {r.randint(100, 999)}-{r.randint(0, 9999999):07}-{r.randint(0, 9999999):07}",
    lambda r: f"Order #{r.randint(10**8, 10**12)}, invoice 2026-{r.randint(0, 99999):05}",
    lambda r: f"+{r.randint(1, 98)} {r.randint(100, 999)} {r.randint(100, 999)} {r.randint(1000, 9999)}",
    lambda r: " ".join(str(r.randint(0, 9999)) for _ in range(12)),
    lambda r: f"EAN {r.randint(10**12, 10**13 - 1)}, {r.random() * 100:.15f}",
    lambda r: "data:image/png;base64,iVBORw0KGgo" + base64.b64encode(r.randbytes(300)).decode(),
    lambda r: f'ETag: "{r.randbytes(16).hex()}"',
    lambda r: "ssh-ed25519 " + base64.b64encode(r.randbytes(51)).decode() + " user@host",
    lambda r: (
        f"https://cdn.example.net/{r.randbytes(4).hex()}/a.{r.randbytes(6).hex()}.js?v={r.randint(1, 10**9)}"
    ),
    lambda r: (
        ":".join(f"{one:02x}" for one in r.randbytes(6))
        + f" {r.randint(1, 65535):x}::{r.randint(1, 65535):x}"
    ),
    lambda r: "key fingerprint SHA256:" + base64.b64encode(r.randbytes(32)).decode().rstrip("="),
    lambda r: (
        f"VAT DE{r.randint(10**8, 10**9 - 1)}, ISBN 978-3-{r.randint(100, 999)}-{r.randint(10000, 99999)}-7"
    ),
)
