"""A durable, chained audit log in append-only files, and what reads and checks it.

The format is in `chain` (lines and hashes) and `records` (names of members).
"""

from tabwarden_adapters.audit.clock_steps import ClockStep
from tabwarden_adapters.audit.cursor import RecordsDropped
from tabwarden_adapters.audit.ecs import NAMESPACE, checked_namespace
from tabwarden_adapters.audit.exports import EXPORTS, Export, export_in
from tabwarden_adapters.audit.faults import AuditLogDamaged, Fault, LocatedFault
from tabwarden_adapters.audit.files import FileOperations, FileState, PosixFiles
from tabwarden_adapters.audit.log import AuditTicket, DurableAuditLog
from tabwarden_adapters.audit.opening import durable_audit_log, open_audit_log
from tabwarden_adapters.audit.pins import MAX_PINS_BYTES, Pin, Pins, encode_pins, parse_head, parse_pins
from tabwarden_adapters.audit.proof import MAX_PROOF_BYTES, ProofRefused, Proven, check_proof, prove_record
from tabwarden_adapters.audit.reader import AuditRecord, LogReader, read_records
from tabwarden_adapters.audit.records import written_ms
from tabwarden_adapters.audit.retention import Retention
from tabwarden_adapters.audit.rules import LogRules
from tabwarden_adapters.audit.segments import Head
from tabwarden_adapters.audit.statistics import AuditStatistics
from tabwarden_adapters.audit.verify import Verification, verify_log

__all__ = [
    "EXPORTS",
    "MAX_PINS_BYTES",
    "MAX_PROOF_BYTES",
    "NAMESPACE",
    "AuditLogDamaged",
    "AuditRecord",
    "AuditStatistics",
    "AuditTicket",
    "ClockStep",
    "DurableAuditLog",
    "Export",
    "Fault",
    "FileOperations",
    "FileState",
    "Head",
    "LocatedFault",
    "LogReader",
    "LogRules",
    "Pin",
    "Pins",
    "PosixFiles",
    "ProofRefused",
    "Proven",
    "RecordsDropped",
    "Retention",
    "Verification",
    "check_proof",
    "checked_namespace",
    "durable_audit_log",
    "encode_pins",
    "export_in",
    "open_audit_log",
    "parse_head",
    "parse_pins",
    "prove_record",
    "read_records",
    "verify_log",
    "written_ms",
]
