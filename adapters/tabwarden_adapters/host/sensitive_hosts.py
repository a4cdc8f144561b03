"""Hosts whose pages pause an agent whatever they show: where people sign in, pay, and keep their secrets.

A short list of services that many sites lead to; a person can override each (`/sensitive-overrides`). It is
no list of all banks: a page that shows a field for a password, a card or a code pauses wherever it is.
"""

from collections.abc import Mapping
from typing import Final

SENSITIVE_HOSTS: Final[Mapping[str, tuple[str, ...]]] = {
    "sign-in": (
        "accounts.google.com",
        "appleid.apple.com",
        "account.apple.com",
        "idmsa.apple.com",
        "login.microsoftonline.com",
        "login.live.com",
        "login.yahoo.com",
        "okta.com",
        "auth0.com",
        "onelogin.com",
        "duosecurity.com",
    ),
    "payment": (
        "paypal.com",
        "checkout.stripe.com",
        "pay.google.com",
        "pay.amazon.com",
        "klarna.com",
        "adyen.com",
    ),
    "secrets": (
        "passwords.google.com",
        "1password.com",
        "bitwarden.com",
        "lastpass.com",
        "dashlane.com",
    ),
}


def sensitive_class(host: str) -> str | None:
    """The class of a host in normal form, or of a host that it is a part of."""
    for name, hosts in SENSITIVE_HOSTS.items():
        if any(host == one or host.endswith(f".{one}") for one in hosts):
            return name
    return None
