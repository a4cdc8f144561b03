"""A durable, chained audit log in append-only files, and what reads and checks it.

The format is in `chain` (lines and hashes) and `records` (names of members).
"""

from tabwarden_adapters.audit.faults import AuditLogDamaged, Fault, LocatedFault
from tabwarden_adapters.audit.files import FileOperations, FileState, PosixFiles
from tabwarden_adapters.audit.log import AuditTicket, DurableAuditLog, durable_audit_log, open_audit_log
from tabwarden_adapters.audit.reader import AuditRecord, read_records
from tabwarden_adapters.audit.segments import Head
from tabwarden_adapters.audit.statistics import AuditStatistics
from tabwarden_adapters.audit.verify import Verification, verify_log

__all__ = [
    "AuditLogDamaged",
    "AuditRecord",
    "AuditStatistics",
    "AuditTicket",
    "DurableAuditLog",
    "Fault",
    "FileOperations",
    "FileState",
    "Head",
    "LocatedFault",
    "PosixFiles",
    "Verification",
    "durable_audit_log",
    "open_audit_log",
    "read_records",
    "verify_log",
]
