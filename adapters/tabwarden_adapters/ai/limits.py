"""How much one exchange with a gateway may be, and how long it may say nothing."""

from dataclasses import dataclass, fields
from typing import Final

from tabwarden.errors import ConfigurationError

MAX_CHARACTERS: Final = 20_000  # of an answer: as many as a prompt may have
PAGE_CHARACTERS: Final = 10_000  # of page text: what one read returns
TITLE_CHARACTERS: Final = 256  # of its title: what a tab strip can show, and more
HOLD_CHARACTERS: Final = 4_096  # longer than any credential with a form: an RSA-4096 key in PEM has 3,300
STEP_CHARACTERS: Final = 1_024  # between two looks at a stream: at most twenty of them


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayLimits:
    """Times in seconds. The call's own deadline ends an exchange as well, whatever stands here."""

    connect_s: float = 10.0  # a name look-up, a connection and TLS, across the world
    stall_s: float = 60.0  # without one byte: a model that thinks before its first word
    bytes: int = 16 * 1024 * 1024  # 40,000 events of some 300 bytes
    events: int = 40_000  # a character each, and as many for what a model thinks first
    lines: int = 160_000  # an event has two or three; none may be made of empty ones only
    line_bytes: int = 160 * 1024  # a whole answer in one event, each character as a JSON escape of six
    pieces: int = 160_000  # of the body, as HTTP cuts it: each costs more than what is in it

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ConfigurationError(f"limit {field.name} must be greater than 0")
