"""The report's plots as a PNG, drawn by matplotlib where it is installed."""

import io
from collections.abc import Sequence

from tabwarden.errors import ConfigurationError

from tabwarden_adapters.load.outcomes import Kind
from tabwarden_adapters.load.report import Report
from tabwarden_adapters.load.samples import Calls
from tabwarden_adapters.load.timeline import fills, steps
from tabwarden_adapters.load.words import VERDICT

_COLOURS = ("#2f7d4f", "#b7791f", "#c0392b", "#e58a7f", "#7d4fa8")  # in the order of `Kind`
_FIRST, _SECOND, _LEVEL = "#2f7d4f", "#2b6cb0", "#c0392b"


def require_plotting() -> None:
    """Raises `ConfigurationError` that says what to install."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ConfigurationError(
            "--png is drawn by matplotlib, which is not installed: "
            "pip install 'tabwarden[plot]', or take --html"
        ) from None


def load_picture(report: Report, samples: Calls, agents: Sequence[str]) -> bytes:
    """A PNG. `agents` names each one's principal. Raises as `require_plotting`."""
    require_plotting()
    # Not pyplot: it would look for a screen, and keeps every figure.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lasted_ns = round(report.lasted_s * 1e9)
    pieces, filled = steps(samples, lasted_ns), fills(samples, agents, lasted_ns)
    width = pieces[0].until_s
    middles = [piece.until_s - width / 2 for piece in pieces]
    figure = Figure(figsize=(10, 9), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(VERDICT[report.limiter], fontsize=11)
    answers, latency, windows = figure.subplots(3, 1)
    base = [0.0] * len(pieces)
    for kind, colour in zip(Kind, _COLOURS, strict=True):
        heights = [piece.ended[kind] / width for piece in pieces]
        answers.bar(middles, heights, width, bottom=base, color=colour, label=kind.title)
        base = [below + height for below, height in zip(base, heights, strict=True)]
    answers.set_ylabel("calls a second")
    nothing = float("nan")
    for colour, label, values in (
        (_FIRST, "median", [piece.p50_ms for piece in pieces]),
        (_SECOND, "99th percentile", [piece.p99_ms for piece in pieces]),
    ):
        latency.plot(middles, [nothing if one is None else one for one in values], color=colour, label=label)
    if any(piece.p50_ms for piece in pieces):
        latency.set_yscale("log")
    latency.set_ylabel("ms, accepted, from sending")
    times = [one.at_s for one in filled]
    windows.plot(times, [one.most for one in filled], color=_FIRST, label="principal with the most")
    windows.plot(times, [one.least for one in filled], color=_SECOND, label="principal with the least")
    windows.axhline(report.limit, color=_LEVEL, linestyle="--", label=f"limit {report.limit}")
    windows.set_ylabel("accepted in the minute before")
    windows.set_xlabel("seconds")
    for axes in (answers, latency, windows):
        axes.set_xlim(0, report.lasted_s)
        axes.legend(fontsize=8, loc="best")
        axes.grid(axis="y", alpha=0.3)
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=110)
    return data.getvalue()
