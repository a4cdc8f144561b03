"""Policy files as an office makes them, rightly or not, each with what the model knows of it."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from tabwarden_adapters.policy.signing import SigningKeys
from tabwarden_adapters.policy.times import write_time
from tabwarden_adapters.policy.wire_keys import keys_to_wire

from tests.policy.signed_support import KEYS, OTHER_KEYS
from tests.properties.model import GrantPaper, Paper

IDS = ("a", "b")
SCOPES = ("sessions", "navigate", "reload")
HOSTS = ("one.test", "two.test")
OFFICES: Mapping[str, SigningKeys] = {"ours": KEYS, "others": OTHER_KEYS}
FLAWS = ("ed25519", "mlDsa87", "document")


def write_paper(
    *,
    version: int,
    issued: int,
    expires: int,
    grants: Mapping[str, GrantPaper],
    scopes: frozenset[str] = frozenset(SCOPES),
    hosts: frozenset[str] = frozenset(HOSTS),
    enabled: bool = True,
    signed_by: str = "ours",
    following: str | None = None,
    flaw: str | None = None,
) -> tuple[Paper, bytes]:
    """The model's paper and the signed file. `flaw` names what of it was changed after it was signed."""
    document: dict[str, Any] = {
        "format": "tabwarden-policy/1",
        "version": version,
        "issued": write_time(issued),
        "expires": write_time(expires),
        "agents": {"enabled": enabled, "identityMode": "individual", "scopes": sorted(scopes)},
        "destinations": {"allow": sorted(hosts)},
        "grants": [
            {
                "id": grant_id,
                "name": grant_id,
                "scopes": sorted(grant.scopes),
                "additionalHosts": sorted(grant.hosts),
                "generation": grant.generation,
                "enabled": grant.enabled,
                "expires": write_time(grant.expires),
            }
            for grant_id, grant in grants.items()
        ],
    }
    if following is not None:
        document["nextKeys"] = keys_to_wire(OFFICES[following].public)
    content = json.dumps(document).encode()
    paper = Paper(
        content,
        version,
        issued,
        expires,
        signed_by,
        following,
        flaw is None,
        enabled,
        scopes,
        hosts,
        dict(grants),
    )
    data = OFFICES[signed_by].sign(content)
    return paper, data if flaw is None else _spoilt(data, flaw)


def _spoilt(data: bytes, flaw: str) -> bytes:
    members = json.loads(data)
    raw = bytearray(base64.urlsafe_b64decode(members[flaw] + "=="))
    raw[len(raw) // 2] ^= 1
    members[flaw] = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    return json.dumps(members).encode()
