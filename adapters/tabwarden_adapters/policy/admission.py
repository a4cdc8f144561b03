"""Whether a device takes a signed policy, and what it remembers of it then. No clock and no file in here."""

from dataclasses import replace

from tabwarden.errors import ConfigurationError
from tabwarden.protocol.primitives import equal, sha384

from tabwarden_adapters.policy.document import PolicyDocument
from tabwarden_adapters.policy.layers import CompiledPolicy
from tabwarden_adapters.policy.reading import read_document
from tabwarden_adapters.policy.signing import PublicKeys, read_envelope
from tabwarden_adapters.policy.state import MAX_KNOWN_GRANTS, DeviceState
from tabwarden_adapters.policy.times import write_time
from tabwarden_adapters.policy.wire_keys import keys_from_wire

ISSUED_AHEAD_MS = 5 * 60_000  # how far the clocks of the office and the device may be apart


def admit(
    state: DeviceState, data: bytes, wall_ms: int, adapter_scopes: frozenset[str] | None = None
) -> tuple[DeviceState, CompiledPolicy]:
    """The policy in the envelope `data`, and the state to remember before it may be used.

    `wall_ms` is what the clock says; the latest time that the device has seen counts if it is later. Refused
    with a `ConfigurationError` naming the field: other keys, a lower version, the same version with other
    contents, a lower generation of any grant, a policy that is not valid yet or no more.
    """
    now = max(wall_ms, state.wall_ms)
    envelope = read_envelope(data)
    keys = state.keys
    if state.next_keys is not None and envelope.key_id == state.next_keys.key_id:
        keys = state.next_keys
    content = envelope.open_with(keys)
    document = read_document(content)
    digest = sha384(content)
    _check_version(document, digest, state)
    policy = CompiledPolicy(document, adapter_scopes)
    if policy.issued_ms > now + ISSUED_AHEAD_MS:
        raise ConfigurationError(
            f"issued: {document.issued} is still to come; it is {write_time(now)} on this machine"
        )
    if policy.expires_ms <= now:
        raise ConfigurationError(
            f"expires: {document.expires} is past; "
            + (
                f"this machine's clock has been at {write_time(now)} before. Publish a newer policy, or "
                "enrol anew if the clock was wrong then"
                if now > wall_ms
                else "publish a newer policy"
            )
        )
    generations = _generations(document, state)
    if document.version == state.version and state.digest:
        return replace(state, wall_ms=now), policy
    return (
        DeviceState(keys, _next_keys(document, keys), document.version, digest, generations, now),
        policy,
    )


def _check_version(document: PolicyDocument, digest: bytes, state: DeviceState) -> None:
    if document.version < state.version:
        raise ConfigurationError(
            f"version: {document.version} is lower than {state.version}, which this device has seen"
        )
    if document.version == state.version and state.digest and not equal(digest, state.digest):
        raise ConfigurationError(
            f"version: this device has seen {document.version} with other contents: give it a higher one"
        )


def _generations(document: PolicyDocument, state: DeviceState) -> dict[str, int]:
    generations = dict(state.generations)
    for number, grant in enumerate(document.grants):
        highest = generations.get(grant.id, 0)
        if grant.generation < highest:
            raise ConfigurationError(
                f"grants[{number}].generation: {grant.generation} of {grant.id} is lower than {highest}, "
                "which this device has seen"
            )
        generations[grant.id] = grant.generation
    if len(generations) > MAX_KNOWN_GRANTS:
        raise ConfigurationError(
            f"grants: this device would have seen more than {MAX_KNOWN_GRANTS} ids: use ids again, "
            "or enrol anew"
        )
    return generations


def _next_keys(document: PolicyDocument, keys: PublicKeys) -> PublicKeys | None:
    if document.next_keys is None:
        return None
    following = keys_from_wire(document.next_keys, "nextKeys")
    if following.key_id == keys.key_id:
        raise ConfigurationError("nextKeys: are the keys that sign this policy already: leave them out")
    return following
