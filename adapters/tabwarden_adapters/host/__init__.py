"""The host control protocol, both sides.

`HostControlServer` is the host's: the person's answers, behind a port on 127.0.0.1 that host.json leads to.
`HostPolicy` is the engine's, and `StaticPolicy` an engine's without a host. `risks_of` says what is risky.
"""

from tabwarden_adapters.host.agreements import Agreements
from tabwarden_adapters.host.backend import HostTabs, PersonBackend
from tabwarden_adapters.host.consent import HostAuthorizer
from tabwarden_adapters.host.errors import ErrorCode
from tabwarden_adapters.host.handing_over import HandsOver
from tabwarden_adapters.host.host_file import HostFile, default_home, read_host_file
from tabwarden_adapters.host.host_policy import HostPolicy
from tabwarden_adapters.host.limits import HostLimits
from tabwarden_adapters.host.link import HostLink, attach_host
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
from tabwarden_adapters.host.private_targets import PrivateTargets
from tabwarden_adapters.host.problems import HostProblem, HostUnavailable
from tabwarden_adapters.host.questions import Question, QuestionCounts, QuestionEnd, Questions, Reply
from tabwarden_adapters.host.releasing import Releases
from tabwarden_adapters.host.risk_names import NAMES
from tabwarden_adapters.host.risks import RISKS, Deed, Facts, Risk, risks_of
from tabwarden_adapters.host.seen_log import LogCounts, SeenLog
from tabwarden_adapters.host.sensitive_hosts import SENSITIVE_HOSTS
from tabwarden_adapters.host.server import HostControlServer, HostStatistics
from tabwarden_adapters.host.sight import Ahead, SeenTab, SeenTabs
from tabwarden_adapters.host.site_modes import SiteModes
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
    "SENSITIVE_HOSTS",
    "Agreements",
    "Ahead",
    "AllTargets",
    "Answer",
    "ApprovalKind",
    "ApprovalRequest",
    "Deed",
    "ErrorCode",
    "ExcludesTargets",
    "Facts",
    "HandoffRequest",
    "HandsOver",
    "HostAuthorizer",
    "HostBackend",
    "HostControlServer",
    "HostFile",
    "HostLimits",
    "HostLink",
    "HostPolicy",
    "HostProblem",
    "HostStatistics",
    "HostTabs",
    "HostUnavailable",
    "KeepsLog",
    "LogCounts",
    "LogEntry",
    "OpenTabRequest",
    "OpensTabs",
    "PersonBackend",
    "Policy",
    "PrivateTargets",
    "Question",
    "QuestionCounts",
    "QuestionEnd",
    "Questions",
    "Releases",
    "Reply",
    "Risk",
    "Scrubber",
    "SeenLog",
    "SeenTab",
    "SeenTabs",
    "SiteMode",
    "SiteModes",
    "StaticPolicy",
    "TargetFilter",
    "TargetSet",
    "WaitsForUser",
    "attach_host",
    "default_home",
    "read_host_file",
    "readable",
    "risks_of",
    "web_origin",
]
