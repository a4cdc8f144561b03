"""The draft that `policy init` writes: it permits little, and says how to permit more."""

from tabwarden_adapters.policy.times import write_time

DAY_MS = 86_400_000
VALID_DAYS = 90

_STARTER = """\
# A policy for tabwarden. Edit it, then:
#   tabwarden policy verify {name}
#   tabwarden policy sign {name} --keys KEYS/policy-private.json --out policy.json
# Devices take a policy only when it is signed and its version is higher than all they have seen.
version = 1
issued = {issued}
expires = {expires}   # after this moment nothing is allowed: publish a newer policy before

[agents]
enabled = true
identityMode = "individual"   # each agent has a grant below; "legacy": one shared pairing, no grants
# What agents may do at all (`tabwarden actions` lists the policy scopes). An action that is not here is off
# for everybody. Those with a colon work on the browser itself: add them one by one, if ever.
scopes = ["sessions", "navigate", "read"]
ask = []                      # those of them for which a person is asked each time, for all agents
allowedHosts = []             # empty: where `destinations` allows
resourceHosts = []            # what pages may load besides; no tab may be there
allowSensitiveRead = false
browserContext = "isolated"

[destinations]
# Where agents may be: "example.org", "*.example.net", "127.0.0.1:8080", or "*" for every public name.
allow = ["example.org"]
block = []                    # wins over everything

# Limits that grants share. Like every part of a policy they only take away.
[[profiles]]
name = "readers"
scopes = ["sessions", "navigate", "read"]

# One agent each. `generation` goes up to make its credentials of before worthless.
[[grants]]
id = "first-agent"
name = "First agent"
profile = "readers"
scopes = ["sessions", "read"]
additionalHosts = []          # limits this agent further; empty: where `destinations` allows
generation = 1
enabled = true
"""


def starter(wall_ms: int, name: str) -> str:
    """The text of a draft called `name`, valid for 90 days from now."""
    return _STARTER.format(
        name=name, issued=write_time(wall_ms), expires=write_time(wall_ms + VALID_DAYS * DAY_MS)
    )
