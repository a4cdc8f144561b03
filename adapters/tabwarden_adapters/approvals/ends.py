"""Agreements end with the rights of the agent that they were given to."""

from tabwarden.authority.approvals import ApprovalBook
from tabwarden.model import AgentEvent, AuditEvent, LifecycleEvent
from tabwarden.ports import AuditSink, AuditTicket


class AgreementEnds:
    """An `AuditSink` around another, by which `book` learns that a principal was revoked, has expired or was
    issued anew. The end is told even when it cannot be recorded."""

    def __init__(self, audit: AuditSink, book: ApprovalBook) -> None:
        self._audit = audit
        self._book = book

    def admit(self, event: AgentEvent) -> AuditTicket:
        """See `AuditSink`."""
        return self._audit.admit(event)

    def note(self, event: AuditEvent) -> None:
        """See `AuditSink`."""
        if isinstance(event, LifecycleEvent):
            if event.event in ("revoked", "closed"):
                self._book.end_all()
            elif event.event != "started":
                self._book.end_principal(event.principal_id)
        self._audit.note(event)

    async def flush(self) -> None:
        """See `AuditSink`."""
        await self._audit.flush()
