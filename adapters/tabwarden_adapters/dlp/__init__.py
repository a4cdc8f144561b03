"""What leaves a page and what enters it: looked through before it goes on. See docs/dlp.md."""

from tabwarden_adapters.dlp.catalogue import Catalogue, Kingfisher
from tabwarden_adapters.dlp.corporate import NO_RULES, CorporateRule, CorporateRules, compile_rules
from tabwarden_adapters.dlp.findings import DETECTORS, Finding, Inspection, Result
from tabwarden_adapters.dlp.inspector import ContentInspector, InspectionLimits, start_inspector
from tabwarden_adapters.dlp.scrubber import WITHHELD, Scrubber
from tabwarden_adapters.dlp.streaming import HeldStream

__all__ = [
    "DETECTORS",
    "NO_RULES",
    "WITHHELD",
    "Catalogue",
    "ContentInspector",
    "CorporateRule",
    "CorporateRules",
    "Finding",
    "HeldStream",
    "Inspection",
    "InspectionLimits",
    "Kingfisher",
    "Result",
    "Scrubber",
    "compile_rules",
    "start_inspector",
]
