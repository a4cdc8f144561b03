"""THE table of sensitive elements: absent from `read` and `inspect`, denied for every action.

page/sensitive.js decides; this says what it decides. The documentation's table and the tests come from here:
each example must get its row's reason in a real page, and each lookalike none.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sensitive:
    """One reason. `examples` and `lookalikes` are markup in which the element in question has `id=x`
    or is marked with `data-x`."""

    reason: str
    what: str
    examples: tuple[str, ...]
    lookalikes: tuple[str, ...] = ()


SENSITIVE: tuple[Sensitive, ...] = (
    Sensitive(
        "password",
        "an input whose type is, or ever was, `password`; what `autocomplete`, a name or a label calls one",
        (
            "<input data-x type=password>",
            "<input data-x type=PassWord>",
            "<input data-x autocomplete='section-a NEW-password'>",
            "<input data-x autocomplete=current-password>",
            "<input data-x name=user_passwd>",
            "<input data-x id=newPassword>",
            "<label>Your password <input data-x></label>",
            "<label for=a1>Passphrase</label><input data-x id=a1>",
            "<input data-x placeholder='Enter password'>",
            "<span id=l1>Password</span><input data-x aria-labelledby=l1>",
            "<div data-x contenteditable aria-label=Passwort>y</div>",
            "<p data-x id=user-password>y</p>",
        ),
        (
            "<input data-x name=passenger>",
            "<input data-x name=compass>",
            "<a data-x href='/forgot'>Forgot password?</a>",
            "<button data-x>Change password</button>",
            "<label><input data-x type=checkbox name=show> Show password</label>",
        ),
    ),
    Sensitive(
        "masked",
        "text that CSS masks (`-webkit-text-security`), on the element or around it",
        (
            "<input data-x style='-webkit-text-security:disc'>",
            "<div style='-webkit-text-security:square'><p data-x>y</p></div>",
        ),
        ("<input data-x style='-webkit-text-security:none'>",),
    ),
    Sensitive("file", "an upload field", ("<input data-x type=file>",)),
    Sensitive("hidden", "a hidden field", ("<input data-x type=hidden value=y>",)),
    Sensitive(
        "code",
        "one-time codes, PINs, recovery codes: by `autocomplete`, name, label, the form that asks for one, or"
        " four and more fields of one character each",
        (
            "<input data-x autocomplete=one-time-code>",
            "<input data-x autocomplete='ONE-TIME-CODE'>",
            "<input data-x name=otp>",
            "<input data-x name=totpCode>",
            "<input data-x id=mfa_code>",
            "<label>Verification code <input data-x></label>",
            "<label>PIN <input data-x></label>",
            "<form id=verify-otp><input data-x name=code></form>",
            "<form action='/two-factor'><input data-x></form>",
            "<form><input data-x maxlength=1>" + 3 * "<input maxlength=1>" + "</form>",
            "<input data-x name=recovery-code>",
            "<output data-x class='seed-phrase'>y</output>",
        ),
        (
            "<input data-x name=shipping>",
            "<input data-x name=postcode>",
            "<input data-x name=promoCode>",
            "<input data-x name=country_code>",
            "<form id=search><input data-x name=code></form>",
            "<form><input data-x maxlength=1><input></form>",
            "<p data-x class=pin>y</p>",
        ),
    ),
    Sensitive(
        "card",
        "payment cards: every `cc-` token of `autocomplete`, names and labels of numbers, dates and codes",
        (
            "<input data-x autocomplete=cc-number>",
            "<input data-x autocomplete='section-pay billing CC-CSC'>",
            "<select data-x autocomplete=cc-exp-month><option>y</select>",
            "<input data-x name=cardNumber>",
            "<input data-x name=cc_num>",
            "<input data-x name=cvv>",
            "<label>Card number <input data-x></label>",
            "<label>Security code <input data-x></label>",
            "<input data-x placeholder='CVC'>",
        ),
        (
            "<input data-x name=discard>",
            "<p data-x class=card-title>y</p>",
            "<input data-x name=cardinality>",
            "<div data-x class='card'>y</div>",
            "<input data-x autocomplete='shipping street-address'>",
        ),
    ),
    Sensitive(
        "token",
        "token-like names: secrets, tokens, keys, credentials, CSRF values",
        (
            "<input data-x name=csrf_token>",
            "<input data-x name=apiKey>",
            "<input data-x id=client-secret>",
            "<label>Access key <input data-x></label>",
            "<textarea data-x name=private_key></textarea>",
            "<p data-x name=authenticity-token>y</p>",
            "<div data-x class=apiKey><b>y</b></div>",
            "<code data-x data-testid=access-token>y</code>",
        ),
        (
            "<input data-x name=tokenizer>",
            "<p data-x class=token>y</p>",
            "<input data-x name=secretary>",
            "<input data-x name=keyboard>",
            "<p data-x id=author>y</p>",
        ),
    ),
    Sensitive(
        "account",
        "who signs in: `username` and `webauthn` in `autocomplete`, and an account's name in a form with a"
        " password",
        (
            "<input data-x autocomplete=username>",
            "<input data-x autocomplete='email webauthn'>",
            "<form><input data-x name=user><input type=password></form>",
            "<form><input data-x name=login_id><input type=password></form>",
        ),
        (
            "<form><input data-x name=user></form>",
            "<form><input data-x name=email><input type=password></form>",
            "<input data-x autocomplete=email>",
        ),
    ),
    Sensitive(
        "marked",
        "what the page itself marks: `data-sensitive`, `data-private`",
        ("<p data-x data-sensitive>y</p>", "<input data-x data-private>"),
        ("<p data-x data-public>y</p>",),
    ),
)


def table() -> str:
    """The rows as a Markdown table: reason, what it means, one example and one lookalike."""

    def code(markup: tuple[str, ...]) -> str:
        return f"`{markup[0].replace(' data-x', '')}`" if markup else ""

    lines = ["| reason | what | for example | but not |", "|---|---|---|---|"]
    lines += [
        f"| `{row.reason}` | {row.what} | {code(row.examples)} | {code(row.lookalikes)} |"
        for row in SENSITIVE
    ]
    return "\n".join(lines)
