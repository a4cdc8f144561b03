"""Load on a running broker of this machine, and a report that says whether its limiter did what it should.

run = await drive(LoadPlan(agents=20, seconds=30, rate=2), descriptors)
report = report_of(run)
"""

from tabwarden_adapters.load.driving import Brakes, Run, Tally, drive
from tabwarden_adapters.load.figures import Fairness, Percentiles
from tabwarden_adapters.load.files import calls_csv, put, report_json, require_places
from tabwarden_adapters.load.outcomes import Kind
from tabwarden_adapters.load.page import load_page
from tabwarden_adapters.load.picture import load_picture, require_plotting
from tabwarden_adapters.load.plan import LoadPlan, require_loopback
from tabwarden_adapters.load.report import WHOLE, PrincipalReport, Report, report_of
from tabwarden_adapters.load.samples import Sample, Samples
from tabwarden_adapters.load.verdict import Asked, Judgement, LimiterVerdict, judge
from tabwarden_adapters.load.words import VERDICT

__all__ = [
    "VERDICT",
    "WHOLE",
    "Asked",
    "Brakes",
    "Fairness",
    "Judgement",
    "Kind",
    "LimiterVerdict",
    "LoadPlan",
    "Percentiles",
    "PrincipalReport",
    "Report",
    "Run",
    "Sample",
    "Samples",
    "Tally",
    "calls_csv",
    "drive",
    "judge",
    "load_page",
    "load_picture",
    "put",
    "report_json",
    "report_of",
    "require_loopback",
    "require_places",
    "require_plotting",
]
