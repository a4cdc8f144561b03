"""Everything malformed gets one message that names the field, and nothing of it is taken."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tabwarden.errors import ConfigurationError
from tabwarden.protocol.codec import base64url
from tabwarden_adapters.credentials import KeyFileProtector
from tabwarden_adapters.policy.document import MAX_GRANTS, PolicyDocument, policy_schema
from tabwarden_adapters.policy.keys import new_private_keys, read_private_keys
from tabwarden_adapters.policy.reading import read_document
from tabwarden_adapters.policy.signing import read_envelope, read_public_keys, write_public_keys
from tabwarden_adapters.policy.state import DeviceState, StateFile
from tabwarden_adapters.policy.wire_keys import keys_to_wire

from tests.policy.signed_support import KEYS, OTHER_KEYS, Device, document_bytes, policy, signed

ROOT = Path(__file__).parents[2]
GRANT = {"id": "a", "name": "A", "scopes": ["read"], "generation": 1}
DLP = {"id": "a", "kind": "words", "values": ["x"], "directions": ["to-model"]}
MARK = {"id": "a", "title": "A", "url": "https://good.test/"}
WIRE = keys_to_wire(OTHER_KEYS.public)


def grant(**changes: Any) -> dict[str, Any]:
    return {"grants": [GRANT, {**GRANT, "id": "b", **changes}]}


DOCUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"format": "tabwarden-policy/2"}, "format: invalid enum value 'tabwarden-policy/2'"),
    ({"version": 0}, "version: expected int >= 1"),
    ({"version": "5"}, "version: expected int, got str"),
    ({"version": True}, "version: expected int, got bool"),
    ({"version": 5.5}, "version: expected int, got float"),
    ({"issued": "yesterday, before noon"}, "issued: 'yesterday, before noon' is not a time like"),
    ({"issued": "2027-01-01T00:00:00"}, "issued: expected str of length >= 20"),
    ({"issued": "2027-02-30T00:00:00Z"}, "issued: '2027-02-30T00:00:00Z' is not a time like"),
    ({"issued": "2027-01-01 00:00:00Z"}, "issued: '2027-01-01 00:00:00Z' is not a time"),
    ({"expires": 1800000000000}, "expires: expected str, got int"),
    ({"expires": "2027-01-01T00:00:00Z"}, "expires: must be later than issued"),
    ({"agent": {}}, "agent: there is no such field; did you mean 'agents'?"),
    ({"zzz": 1}, "zzz: there is no such field"),
    ({"\x1b[2J": 1}, "'\\x1b[2J': there is no such field"),
    ({"agents__identityMode": "\x1b[2J"}, "agents.identityMode: invalid enum value '\\x1b[2J'"),
    ({"agents": []}, "agents: expected object, got array"),
    ({"agents__enabled": "yes"}, "agents.enabled: expected bool, got str"),
    ({"agents__identityMode": "none"}, "agents.identityMode: invalid enum value 'none'"),
    ({"agents__scope": ["read"]}, "agents.scope: there is no such field; did you mean 'scopes'?"),
    ({"agents__scopes": "read"}, "agents.scopes: expected array, got str"),
    ({"agents__scopes": ["raed"]}, "agents.scopes[0]: there is no scope 'raed'; did you mean 'read'?"),
    ({"agents__scopes": ["browser:read"]}, "agents.scopes[0]: there is no scope 'browser:read'"),
    ({"agents__scopes": ["read", "read"]}, "agents.scopes[1]: 'read' is listed twice"),
    ({"agents__scopes": ["read"] * 65}, "agents.scopes: expected array of length <= 64"),
    ({"agents__allowedHosts": ["*"]}, "agents.allowedHosts[0]: * stands for every host in"),
    ({"agents__allowedHosts": ["https://a.test"]}, "agents.allowedHosts[0]: 'https://a.test' is not a host"),
    ({"agents__resourceHosts": ["A.test"]}, "agents.resourceHosts[0]: write 'a.test' instead of 'A.test'"),
    ({"agents__allowSensitiveRead": 1}, "agents.allowSensitiveRead: expected bool, got int"),
    ({"agents__browserContext": "open"}, "agents.browserContext: invalid enum value 'open'"),
    ({"destinations__allow": ["*.com"]}, "destinations.allow[0]: '*.com' is too wide"),
    ({"destinations__allow": ["a.test:0"]}, "destinations.allow[0]: the port of 'a.test:0' is not a number"),
    ({"destinations__block": ["*"]}, "destinations.block[0]: * stands for"),
    ({"destinations__block": ["x" * 301]}, "destinations.block[0]: expected str of length <= 300"),
    ({"destinations__block": ["a b"]}, "destinations.block[0]: 'a b' is not a host"),
    ({"dlp": [{**DLP, "kind": "magic"}]}, "dlp[0].kind: invalid enum value 'magic'"),
    ({"dlp": [{**DLP, "directions": []}]}, "dlp[0].directions: expected array of length >= 1"),
    ({"dlp": [{**DLP, "directions": ["up"]}]}, "dlp[0].directions[0]: invalid enum value 'up'"),
    ({"dlp": [{**DLP, "directions": ["to-site"] * 6}]}, "dlp[0].directions: expected array of length <= 5"),
    ({"dlp": [DLP, DLP]}, "dlp[1].id: 'a' is there twice"),
    ({"dlp": [{**DLP, "values": []}]}, "dlp[0].values: expected array of length >= 1"),
    ({"settings": {"hidden": []}}, "settings.hidden: there is no such field; did you mean 'hiddenSections'?"),
    ({"settings": {"lockedSections": ["A B"]}}, "settings.lockedSections[0]: expected str matching regex"),
    ({"settings": {"appearance": {"mode": "blue"}}}, "settings.appearance.mode: invalid enum value 'blue'"),
    ({"bookmarks": [{**MARK, "url": "javascript:1"}]}, "bookmarks[0].url: must be an HTTP(S) address"),
    ({"bookmarks": [{**MARK, "url": "https://a:b@c.test/"}]}, "bookmarks[0].url: must be an HTTP(S)"),
    ({"bookmarks": [{**MARK, "title": "\x1b[31m"}]}, "bookmarks[0].title: has a character that cannot"),
    ({"bookmarks": [{**MARK, "title": ""}]}, "bookmarks[0].title: expected str of length >= 1"),
    ({"bookmarks": [MARK, MARK]}, "bookmarks[1].id: 'a' is there twice"),
    ({"ai": {"enabled": True}}, "ai.url: is missing and must be given when ai.enabled is true"),
    ({"ai": {"enabled": True, "url": "https://m.test/"}}, "ai.model: is missing and must be given"),
    ({"ai": {"url": "http://m.test/"}}, "ai.url: must begin with https://"),
    ({"ai": {"url": "nonsense"}}, "ai.url: must be an HTTP(S) address"),
    ({"ai": {"maxCharacters": 0}}, "ai.maxCharacters: expected int >= 1"),
    ({"ai": {"key": "secret"}}, "ai.key: there is no such field"),
    ({"profiles": [{"name": "p"}]}, "profiles[0].scopes: is missing and must be given"),
    ({"profiles": [{"name": "p", "scopes": ["fly"]}]}, "profiles[0].scopes[0]: there is no scope 'fly'"),
    ({"profiles": [{"name": "", "scopes": []}]}, "profiles[0].name: expected str matching regex"),
    ({"profiles": [{"name": "p", "scopes": []}] * 2}, "profiles[1].name: 'p' is there twice"),
    ({"groups": [{"name": "g", "profiles": []}]}, "groups[0].profiles: expected array of length >= 1"),
    ({"groups": [{"name": "g", "profiles": ["reader"]}]},
     "groups[0].profiles[0]: there is no profile 'reader'; did you mean 'readers'?"),
    (grant(id="legacy"), "grants[1].id: 'legacy' is what shared pairing is called"),
    (grant(id="a b"), "grants[1].id: expected str matching regex"),
    (grant(id="a\n"), "grants[1].id: expected str matching regex"),
    (grant(id="a"), "grants[1].id: 'a' is there twice"),
    (grant(name="\u202eevil"), "grants[1].name: has a character that cannot be shown"),
    (grant(generation=0), "grants[1].generation: expected int >= 1"),
    (grant(scopes=["Read"]), "grants[1].scopes[0]: there is no scope 'Read'; did you mean 'read'?"),
    (grant(scopes=None), "grants[1].scopes: expected array, got null"),
    (grant(profile="nobody"), "grants[1].profile: there is no profile 'nobody'"),
    (grant(group="staf"), "grants[1].group: there is no group 'staf'; did you mean 'staff'?"),
    (grant(profile="readers", group="staff"), "grants[1].group: a grant has a profile or a group, not both"),
    (grant(additionalHosts=["::1"]), "grants[1].additionalHosts[0]: '::1' is not a host"),
    (grant(expires="2027-13-01T00:00:00Z"), "grants[1].expires: '2027-13-01T00:00:00Z' is not a time"),
    (grant(expire="x"), "grants[1].expire: there is no such field; did you mean 'expires'?"),
    ({"grants": [GRANT, 7]}, "grants[1]: expected object, got int"),
    ({"grants": [GRANT] * (MAX_GRANTS + 1)}, "grants: expected array of length <= 20000"),
    ({"nextKeys": {"ed25519": WIRE["ed25519"]}}, "nextKeys.mlDsa87: is missing and must be given"),
    ({"nextKeys": {**WIRE, "ed25519": "A" * 42}}, "nextKeys.ed25519: expected str of length >= 43"),
    ({"nextKeys": {**WIRE, "ed25519": "=" * 43}}, "nextKeys.ed25519: is not 32 bytes in unpadded base64url"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), DOCUMENTS, ids=[message for _, message in DOCUMENTS])
def test_a_malformed_document(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_document(document_bytes(**changes))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("field", ["format", "version", "issued", "expires"])
def test_what_a_document_must_have(field: str) -> None:
    document = policy()
    del document[field]
    with pytest.raises(ConfigurationError) as caught:
        read_document(json.dumps(document).encode())
    assert str(caught.value) == f"{field}: is missing and must be given"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the policy is not strict UTF-8 JSON"),
        (b"\xff", "the policy is not strict UTF-8 JSON"),
        (b"[]", "the policy: expected object, got array"),
        (b"null", "the policy: expected object, got null"),
        (b'{"version": 1, "version": 2}', "the policy is not strict UTF-8 JSON (duplicate key)"),
        (b'{"version": NaN}', "the policy is not strict UTF-8 JSON (not a number)"),
        (b"[" * 100_000, "the policy is not strict UTF-8 JSON (depth)"),
        (document_bytes() + b"x", "the policy is not strict UTF-8 JSON (trailing bytes)"),
        (document_bytes() + b" " * (16 << 20), "the policy is larger than 16 MiB"),
    ],
)
def test_what_is_no_document(data: bytes, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_document(data)
    assert str(caught.value).startswith(message)


def envelope(**changes: Any) -> bytes:
    members = {**json.loads(signed()), **changes}
    return json.dumps({name: value for name, value in members.items() if value is not None}).encode()


FLIPPED = base64url(b"\0" * 64)
ENVELOPES: list[tuple[Callable[[], bytes], str]] = [
    (lambda: b"{", "the signed policy is not strict UTF-8 JSON"),
    (lambda: b"[]", "the signed policy: expected object, got array"),
    (document_bytes, "this policy is not signed: sign it with `tabwarden policy sign`"),
    (lambda: envelope(format="x"), "format: invalid enum value 'x'"),
    (lambda: envelope(keys=None), "keys: is missing and must be given"),
    (lambda: envelope(keys="x"), "keys: expected str matching regex"),
    (lambda: envelope(keys=OTHER_KEYS.public.key_id), f"keys: signed with {OTHER_KEYS.public.key_id}, but"),
    (lambda: signed(OTHER_KEYS), f"keys: signed with {OTHER_KEYS.public.key_id}, but"),
    (lambda: envelope(document=None), "document: is missing and must be given"),
    (lambda: envelope(document="A"), "document: is not 0 bytes in unpadded base64url"),
    (lambda: envelope(document="é" * 4), "document: is not 3 bytes in unpadded base64url"),
    (lambda: envelope(document=base64url(document_bytes(version=6))), "ed25519: the signature does not fit"),
    (lambda: envelope(ed25519="AAAA"), "ed25519: is not 64 bytes in unpadded base64url"),
    (lambda: envelope(ed25519=FLIPPED), "ed25519: the signature does not fit the document"),
    (lambda: envelope(mlDsa87=None), "mlDsa87: is missing and must be given"),
    (lambda: envelope(mlDsa87="AAAA"), "mlDsa87: is not 4627 bytes in unpadded base64url"),
    (lambda: envelope(mlDsa87=base64url(bytes(4627))), "mlDsa87: the signature does not fit the document"),
    (lambda: envelope(mldsa87="x"), "mldsa87: there is no such field; did you mean 'mlDsa87'?"),
    (lambda: envelope(mlDsa87=json.loads(signed(version=6))["mlDsa87"]), "mlDsa87: the signature"),
    (lambda: envelope(ed25519=json.loads(signed(version=6))["ed25519"]), "ed25519: the signature"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), ENVELOPES, ids=[message for _, message in ENVELOPES])
def test_a_malformed_envelope_is_taken_by_no_device(
    tmp_path: Path, make: Callable[[], bytes], message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_envelope(make()).open_with(KEYS.public)
    assert str(caught.value).startswith(message)
    device = Device(tmp_path)
    before = device.state.load()
    device.file.write_bytes(make())
    report = device.policy.load()
    assert (report.kind, report.version) == ("refused", 0)
    assert message in report.message
    assert device.state.load() == before


def test_a_good_envelope_gives_exactly_the_bytes_that_were_signed() -> None:
    data = document_bytes()
    assert read_envelope(KEYS.sign(data)).open_with(KEYS.public) == data
    assert read_document(data).version == 5


PUBLIC = json.loads(write_public_keys(KEYS.public))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({**PUBLIC, "format": 1}, "format: expected str, got int"),
        ({**PUBLIC, "ed25519": "AA"}, "ed25519: is not 32 bytes"),
        ({**PUBLIC, "mlDsa87": "AA"}, "mlDsa87: is not 2592 bytes"),
        ({**PUBLIC, "more": 1}, "more: there is no such field"),
        ({"format": PUBLIC["format"]}, "ed25519: is missing"),
        ([], "the public keys: expected object"),
    ],
)
def test_malformed_public_keys(value: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_public_keys(json.dumps(value).encode())
    assert str(caught.value).startswith(message)
    assert read_public_keys(write_public_keys(KEYS.public)) == KEYS.public


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "x"}, "format: invalid enum value"),
        ({"protection": "prayer"}, "protection: invalid enum value"),
        ({"protection": "scrypt"}, "salt: is missing"),
        ({"salt": "AA"}, "salt: only sealed keys have one"),
        ({"seeds": "AA"}, "seeds: is not 64 bytes"),
        ({"seeds": None}, "seeds: expected str, got null"),
        ({"seed": "x"}, "seed: there is no such field; did you mean 'seeds'?"),
    ],
)
def test_malformed_private_keys(changes: dict[str, Any], message: str) -> None:
    data, _ = new_private_keys(None)
    secret = json.loads(data)["seeds"]
    with pytest.raises(ConfigurationError) as caught:
        read_private_keys(json.dumps({**json.loads(data), **changes}).encode(), None)
    assert str(caught.value).startswith(message)
    assert secret not in str(caught.value)


def test_private_keys_under_a_passphrase() -> None:
    data, keys = new_private_keys("correct horse battery")
    assert read_private_keys(data, "correct horse battery").public == keys.public
    with pytest.raises(ConfigurationError, match="seeds: the passphrase is wrong"):
        read_private_keys(data, "correct horse batterz")
    with pytest.raises(ConfigurationError, match="give their passphrase"):
        read_private_keys(data, None)
    with pytest.raises(ConfigurationError, match="less than 12 characters"):
        new_private_keys("short")


def _state(tmp_path: Path) -> StateFile:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return StateFile(folder / "state.json", KeyFileProtector(folder))


def _resealed(state: StateFile, change: Callable[[dict[str, Any]], None]) -> None:
    """Put a state in its place that was sealed by the right key but is not right."""
    protector = KeyFileProtector(state.path.parent)
    file = json.loads(state.path.read_bytes())
    from tabwarden_adapters.policy import state as module
    from tabwarden_adapters.policy.signing import decoded

    sealed = decoded(file["sealed"], len(file["sealed"]) * 3 // 4, "sealed")
    plain = json.loads(protector.unprotect(sealed, module._CONTEXT))
    change(plain)
    file["sealed"] = base64url(protector.protect(json.dumps(plain).encode(), module._CONTEXT))
    state.path.write_text(json.dumps(file))


def _linked(state: StateFile) -> None:
    aside = state.path.with_name("aside")
    state.path.rename(aside)
    state.path.symlink_to(aside)


STATES: list[tuple[Callable[[StateFile], object], str]] = [
    (lambda state: state.path.unlink(), "there is no policy state at"),
    (lambda state: state.path.write_bytes(b""), "it is not strict UTF-8 JSON"),
    (lambda state: state.path.write_bytes(b"{}"), "format: is missing and must be given"),
    (lambda state: _edit(state, "format", "x"), "format: invalid enum value 'x'"),
    (lambda state: _edit(state, "protection", "other-v1"), "protection: it is sealed by 'other-v1'"),
    (lambda state: _edit(state, "sealed", "AAAA"), "sealed: it was changed, or its key is gone"),
    (lambda state: _edit(state, "sealed", "!"), "sealed: is not 0 bytes in unpadded base64url"),
    (lambda state: _edit(state, "version", 1), "version: there is no such field"),
    (lambda state: (state.path.parent / "descriptor.key").unlink(), "sealed: it was changed, or its key"),
    (lambda state: _resealed(state, lambda plain: plain.update(version=-1)), "version: expected int >= 0"),
    (lambda state: _resealed(state, lambda plain: plain.update(digest="AA")), "digest: is not 48 bytes"),
    (lambda state: _resealed(state, lambda plain: plain["keys"].pop("ed25519")), "keys.ed25519: is missing"),
    (lambda state: _resealed(state, lambda plain: plain.update(generations={"a": 0})),
     "generations[...]: expected int >= 1"),
    (lambda state: state.path.chmod(0o644), "is open to other users: chmod 600 it"),
    (lambda state: state.path.parent.chmod(0o755), "is open to other users: chmod 700 it"),
    (_linked, "is a symbolic link"),
    (lambda state: os.link(state.path, state.path.with_name("other")), "has another name (a hard link)"),
]  # fmt: skip


def _edit(state: StateFile, name: str, value: object) -> None:
    state.path.write_text(json.dumps({**json.loads(state.path.read_bytes()), name: value}))


@pytest.mark.parametrize(("spoil", "message"), STATES, ids=[message for _, message in STATES])
def test_a_state_that_cannot_be_used(
    tmp_path: Path, spoil: Callable[[StateFile], object], message: str
) -> None:
    state = _state(tmp_path)
    state.create(DeviceState(KEYS.public, version=3, digest=b"\x07" * 48, generations={"a": 2}))
    assert state.load().generations == {"a": 2}
    spoil(state)
    with pytest.raises(ConfigurationError) as caught:
        state.load()
    assert message in str(caught.value)
    with pytest.raises(ConfigurationError), state.changing():
        raise AssertionError("a state that cannot be read must not be changed")


def test_a_state_is_sealed_and_holds_nothing_in_clear(tmp_path: Path) -> None:
    state = _state(tmp_path)
    state.create(DeviceState(KEYS.public, OTHER_KEYS.public, generations={"some-agent": 2}))
    data = state.path.read_bytes()
    assert b"some-agent" not in data
    assert base64url(KEYS.public.ed25519).encode() not in data
    assert state.load().next_keys == OTHER_KEYS.public
    assert state.path.stat().st_mode & 0o777 == 0o600
    assert not [
        name
        for name in os.listdir(state.path.parent)
        if name.startswith(".state.json.") and name[-4:] != "lock"
    ]


def test_the_published_schema_is_current() -> None:
    published = json.loads((ROOT / "docs/policy.schema.json").read_text())
    assert published == json.loads(json.dumps(policy_schema())), (
        "run: tabwarden policy schema > docs/policy.schema.json"
    )
    assert "\\Z" not in json.dumps(published)


def test_every_declared_field_is_read() -> None:
    full = policy(
        dlp=[{**DLP, "action": "mask", "sensitive": True}],
        settings={"hiddenSections": ["a"], "lockedSections": [], "appearance": {"mode": "dark"}},
        bookmarks=[{**MARK, "folder": "F"}],
        ai={"enabled": True, "url": "https://m.test/v1", "model": "m", "maxCharacters": 100},
        nextKeys=WIRE,
    )
    document = read_document(json.dumps(full).encode())
    assert set(full) == {field.encode_name for field in msgspec.structs.fields(PolicyDocument)}
    assert document.settings.appearance.mode == "dark"
    assert document.dlp[0].sensitive


NAMES = st.sampled_from(["format", "version", "grants", "agents", "scopes", "id", "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
)


@settings(deadline=None)
@given(VALUES)
def test_nothing_but_a_typed_error_comes_of_any_json(value: Any) -> None:
    with pytest.raises(ConfigurationError):
        read_document(json.dumps(value).encode())
