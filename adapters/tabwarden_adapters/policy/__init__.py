"""Who may do what, and where.

`StaticPolicy` is the same for all callers and stays as it is. `SignedPolicy` is a signed document with rights
for each grant, taken forward only by a device that is enrolled.
"""

from tabwarden_adapters.policy.admission import admit
from tabwarden_adapters.policy.authoring import Loaded, load_any, load_draft
from tabwarden_adapters.policy.comparing import Change, compare
from tabwarden_adapters.policy.denials import naming_denials
from tabwarden_adapters.policy.destination import DestinationRefused, parse_destination
from tabwarden_adapters.policy.document import DlpRule, PolicyDocument, policy_schema
from tabwarden_adapters.policy.enrolment import enrol
from tabwarden_adapters.policy.expectations import load_cases, try_cases
from tabwarden_adapters.policy.explaining import explain
from tabwarden_adapters.policy.files import (
    create_private_file,
    read_private_file,
    read_public_file,
    replace_public_file,
)
from tabwarden_adapters.policy.keys import needs_passphrase, new_private_keys, read_private_keys
from tabwarden_adapters.policy.layers import CompiledPolicy
from tabwarden_adapters.policy.signed import PolicyReport, SignedPolicy
from tabwarden_adapters.policy.signing import (
    MAX_ENVELOPE_BYTES,
    PublicKeys,
    read_envelope,
    read_public_keys,
    write_public_keys,
)
from tabwarden_adapters.policy.starter import starter
from tabwarden_adapters.policy.state import DeviceState, StateFile
from tabwarden_adapters.policy.static import StaticPolicy
from tabwarden_adapters.policy.times import parse_time, write_time

__all__ = [
    "MAX_ENVELOPE_BYTES",
    "Change",
    "CompiledPolicy",
    "DestinationRefused",
    "DeviceState",
    "DlpRule",
    "Loaded",
    "PolicyDocument",
    "PolicyReport",
    "PublicKeys",
    "SignedPolicy",
    "StateFile",
    "StaticPolicy",
    "admit",
    "compare",
    "create_private_file",
    "enrol",
    "explain",
    "load_any",
    "load_cases",
    "load_draft",
    "naming_denials",
    "needs_passphrase",
    "new_private_keys",
    "parse_destination",
    "parse_time",
    "policy_schema",
    "read_envelope",
    "read_private_file",
    "read_private_keys",
    "read_public_file",
    "read_public_keys",
    "replace_public_file",
    "starter",
    "try_cases",
    "write_public_keys",
    "write_time",
]
