"""No value that carries a secret or a payload prints it: not by repr, str, format, nor in a traceback."""

import traceback

import msgspec
import pytest
from tabwarden.authority.challenges import BoundChallenge
from tabwarden.authority.principals import Account, Capability, InstanceIdentity, PrincipalRegistry
from tabwarden.limits import Limits
from tabwarden.model import (
    AgentRequest,
    AuthenticatedRequest,
    Caller,
    ConnectionDescriptor,
    Outcome,
    SealedReply,
)
from tabwarden.protocol.challenge import ReceivedChallenge
from tabwarden.protocol.codec import SUITE, base64url, parse_json
from tabwarden.protocol.primitives import Ed25519Signer, NativeProvider, X25519Key
from tabwarden.protocol.proof import CapabilityKeys, Proof
from tabwarden.protocol.seal import CallKeys, RequestWire
from tabwarden.service.challenge_pool import ReadyChallenge
from tabwarden.service.http_gate import HttpReply, RequestHead
from tabwarden.service.no_trace import NullTracer

from tests.protocol.present import PROVIDERS
from tests.protocol.scene import ADDRESS, make_scene, seeded

SCENE = make_scene()
SECRET = seeded("a secret to look for", 48)
SEED = seeded("a seed to look for", 64)
TEXT = "a page's words to look for"
IDENTITY = InstanceIdentity(ADDRESS, SCENE.ed.public, SCENE.pq.public)
CAPABILITY_KEYS = CapabilityKeys(SECRET, SECRET, SECRET, SECRET)
KEM, X = NativeProvider().kem_key(SEED), X25519Key(SEED[:32])


class Words(msgspec.Struct, frozen=True):
    words: str


def registry() -> PrincipalRegistry:
    made = PrincipalRegistry(IDENTITY, "legacy", Limits(), decoy=SECRET[:32])
    made.pair_legacy(SECRET[:32])
    return made


CARRIERS: dict[str, object] = {
    "capability keys": CAPABILITY_KEYS,
    "call keys": CallKeys(SECRET[:32], SECRET[:12], SECRET[:32], SECRET[:12]),
    "proof": Proof("agent-7", 3, 1, bytes(32), SECRET),
    "request wire": RequestWire(bytes(16), SECRET, SECRET[:32], SECRET),
    "received challenge": ReceivedChallenge.parse(SCENE.wire()[:-48] + SECRET),
    "descriptor": ConnectionDescriptor(
        ADDRESS, SECRET[:32], SCENE.ed.public, SCENE.pq.public, SCENE.instance, "agent-7", 3, SUITE
    ),
    "capability": Capability("agent-7", 3, None, CAPABILITY_KEYS, Account(Limits())),
    "registry": registry(),
    "capability of a registry": next(iter(registry())),
    "bound challenge": BoundChallenge(
        bytes(16), 3, KEM, X, SECRET, SECRET, SECRET, 1, NullTracer().start_request()
    ),
    "ready challenge": ReadyChallenge(SCENE.signed, KEM, X),
    "ed25519 signer": Ed25519Signer(SEED[:32]),
    "ml-dsa signer": NativeProvider().signer(SEED[:32]),
    "ml-kem key": KEM,
    "x25519 key": X,
    "authenticated request": AuthenticatedRequest(Caller(None, None), TEXT.encode()),
    "agent request": AgentRequest(
        Caller(None, None), "read", "read", "browser:read", Words(TEXT), None, idempotency_key=TEXT
    ),
    "outcome": Outcome(None, {"text": TEXT}),
    "sealed reply": SealedReply(SECRET),
    "request head": RequestHead(b"POST", b"/v1/agent", [(b"tabwarden-proof", SECRET)], 1),
    "http reply": HttpReply(200, SECRET),
    **{f"{name} key": provider.kem_key() for name, provider in PROVIDERS.items()},
}


def shown(text: str) -> list[str]:
    """The secrets that can be found in `text`, in any usual spelling and also in part."""
    found = []
    for name, secret in (("secret", SECRET), ("seed", SEED)):
        for piece in (secret[:12], secret[:16], secret[:32]):
            spellings = (
                piece.hex(),
                piece.hex().upper(),
                repr(piece)[2:-1],
                base64url(piece)[:-2],
                str(list(piece))[1:-1],
                str(int.from_bytes(piece)),
            )
            found += [name for spelling in spellings if spelling in text]
    return found + [TEXT] * (TEXT in text)


def test_the_search_finds_what_it_looks_for() -> None:
    for text in (f"{SECRET!r}", SECRET.hex(), base64url(SECRET), f"{list(SECRET)}", f"x {TEXT}", SEED.hex()):
        assert shown(text)
    assert not shown("nothing")


@pytest.mark.parametrize("name", CARRIERS)
def test_no_carrier_prints_its_secret(name: str) -> None:
    carrier = CARRIERS[name]
    for text in (repr(carrier), str(carrier), f"{carrier}", f"{[carrier]}", f"{ {'k': carrier} }"):
        assert not shown(text)
        assert len(text) < 20_000


def test_a_refusal_of_json_quotes_nothing_of_it() -> None:
    for data in (f'{{"{TEXT}": }}', f'{{"{TEXT}":1,"{TEXT}":2}}', f'"{TEXT}', f'"{TEXT}" x', f"{TEXT}"):
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - its text is what is looked at
            parse_json(data.encode())
        assert not shown("".join(traceback.format_exception(caught.value)))
