"""Whether the rules for text can be used by an inspector: names that exist, expressions that parse and stay
small. The inspector compiles them again and may refuse more; tests hold the two together."""

from collections.abc import Iterable
from typing import Final

from tabwarden.errors import ConfigurationError

from tabwarden_adapters.policy.document import DlpRule
from tabwarden_adapters.policy.names import nearest

DETECTORS: Final = ("card", "credential", "iban")
VALUES: Final = 10_000  # of all rules: compiling more takes too long
INSTRUCTIONS: Final = 10_000  # of one expression, as RE2 counts them
ALL_INSTRUCTIONS: Final = 400_000


def check_text_rules(rules: Iterable[DlpRule]) -> None:
    """Raises `ConfigurationError` for the first that cannot be used, by its field (`dlp[3].values[0]`)."""
    count = size = 0
    for number, rule in enumerate(rules):
        for index, value in enumerate(rule.values):
            field = f"dlp[{number}].values[{index}]"
            count += 1
            if rule.kind == "detector":
                _detector(rule, value, field)
            else:
                size += _size(value, field, as_it_stands=rule.kind == "words")
            if count > VALUES or size > ALL_INSTRUCTIONS:
                raise ConfigurationError(f"{field}: more than can be looked for in time: leave some out")


def _detector(rule: DlpRule, name: str, field: str) -> None:
    if name not in DETECTORS:
        raise ConfigurationError(f"{field}: there is no detector {name!a}{nearest(name, DETECTORS)}")
    if name == "credential" and (rule.sensitive or rule.action == "mask"):
        raise ConfigurationError(f"{field}: credentials are always denied: leave sensitive and mask out")


def _size(value: str, field: str, *, as_it_stands: bool) -> int:
    import re2  # most policies have no such rules, and every command would wait for it

    if as_it_stands and not any(one.isalnum() for one in value):
        raise ConfigurationError(f"{field}: has no letter or digit to look for")
    options = re2.Options()
    options.log_errors = False
    try:
        made = re2.compile(re2.escape(value) if as_it_stands else value, options)
    except UnicodeEncodeError:
        raise ConfigurationError(f"{field}: has a lone surrogate: leave it out") from None
    except re2.error as error:
        said = error.args[0].decode("utf-8", "replace")
        raise ConfigurationError(
            f"{field}: is no RE2 expression ({said}); see https://github.com/google/re2/wiki/Syntax"
        ) from None
    if made.programsize > INSTRUCTIONS:
        raise ConfigurationError(f"{field}: is too large: shorten its repetitions and classes")
    if made.search("") is not None:
        raise ConfigurationError(f"{field}: matches an empty text, and so every text: ask for a character")
    return int(made.programsize)
