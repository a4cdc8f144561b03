"""How the commands of an administrator reach a running broker: a Unix socket in a private folder.

Not the agents' channel: no credential of an agent opens it, and nothing of it goes over TCP.
"""

from tabwarden_adapters.administration.asking import AdministrationFailed, ask
from tabwarden_adapters.administration.messages import (
    Administrator,
    AnswerApproval,
    ForgetApproval,
    IssueGrant,
    ListApprovals,
    ListGrants,
    ListTraces,
    ReloadPolicy,
    Request,
    RevokeGrant,
)
from tabwarden_adapters.administration.serving import administration

__all__ = [
    "AdministrationFailed",
    "Administrator",
    "AnswerApproval",
    "ForgetApproval",
    "IssueGrant",
    "ListApprovals",
    "ListGrants",
    "ListTraces",
    "ReloadPolicy",
    "Request",
    "RevokeGrant",
    "administration",
    "ask",
]
