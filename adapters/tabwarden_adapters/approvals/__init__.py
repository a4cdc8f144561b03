"""Asking a person: the authorizer that waits for an answer, and where people see the questions.

A policy asks (`ask`, docs/approvals.md); `ApprovingAuthorizer` wraps it; `PendingApprovals` holds the
questions; `TerminalApprover` and others show them. No agent's channel leads here.
"""

from tabwarden.approval import ApprovalAnswer, ApprovalRequest, Fact, Reach, Remembered
from tabwarden.authority.approvals import ApprovalBook

from tabwarden_adapters.approvals.authorizer import ApprovingAuthorizer
from tabwarden_adapters.approvals.board import Ending, NotPending, PendingApprovals, say
from tabwarden_adapters.approvals.ends import AgreementEnds
from tabwarden_adapters.approvals.place import Place, PlaceOf, origin_of, places
from tabwarden_adapters.approvals.screen import rendered
from tabwarden_adapters.approvals.terminal import TerminalApprover
from tabwarden_adapters.approvals.tty import Terminal, TerminalGone

__all__ = [
    "AgreementEnds",
    "ApprovalAnswer",
    "ApprovalBook",
    "ApprovalRequest",
    "ApprovingAuthorizer",
    "Ending",
    "Fact",
    "NotPending",
    "PendingApprovals",
    "Place",
    "PlaceOf",
    "Reach",
    "Remembered",
    "Terminal",
    "TerminalApprover",
    "TerminalGone",
    "origin_of",
    "places",
    "rendered",
    "say",
]
