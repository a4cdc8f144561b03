"""The host control protocol, both sides.

`HostControlServer` is the host's: the person's answers, behind a port on 127.0.0.1 that host.json leads to.
`HostPolicy` is the engine's, and `StaticPolicy` an engine's without a host. `risks_of` says what is risky.
"""

from tabwarden_adapters.host.errors import ErrorCode
from tabwarden_adapters.host.host_file import HostFile, default_home, read_host_file
from tabwarden_adapters.host.host_policy import HostPolicy
from tabwarden_adapters.host.limits import HostLimits
from tabwarden_adapters.host.origins import OPAQUE, web_origin
from tabwarden_adapters.host.ports import (
    ExcludesTargets,
    HostBackend,
    KeepsLog,
    OpensTabs,
    Policy,
    Scrubber,
    TargetFilter,
    WaitsForUser,
)
from tabwarden_adapters.host.problems import HostProblem, HostUnavailable
from tabwarden_adapters.host.risk_names import NAMES
from tabwarden_adapters.host.risks import RISKS, Deed, Facts, Risk, risks_of
from tabwarden_adapters.host.seen_log import LogCounts, SeenLog
from tabwarden_adapters.host.server import HostControlServer, HostStatistics
from tabwarden_adapters.host.static_policy import StaticPolicy
from tabwarden_adapters.host.targets import AllTargets, TargetSet
from tabwarden_adapters.host.values import (
    Answer,
    ApprovalKind,
    ApprovalRequest,
    HandoffRequest,
    LogEntry,
    OpenTabRequest,
    SiteMode,
    readable,
)

__all__ = [
    "NAMES",
    "OPAQUE",
    "RISKS",
    "AllTargets",
    "Answer",
    "ApprovalKind",
    "ApprovalRequest",
    "Deed",
    "ErrorCode",
    "ExcludesTargets",
    "Facts",
    "HandoffRequest",
    "HostBackend",
    "HostControlServer",
    "HostFile",
    "HostLimits",
    "HostPolicy",
    "HostProblem",
    "HostStatistics",
    "HostUnavailable",
    "KeepsLog",
    "LogCounts",
    "LogEntry",
    "OpenTabRequest",
    "OpensTabs",
    "Policy",
    "Risk",
    "Scrubber",
    "SeenLog",
    "SiteMode",
    "StaticPolicy",
    "TargetFilter",
    "TargetSet",
    "WaitsForUser",
    "default_home",
    "read_host_file",
    "readable",
    "risks_of",
    "web_origin",
]
