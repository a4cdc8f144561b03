"""What the host's terminal shows. What engines and their agents wrote stands behind a bar on each of its
lines, so none of it can pass for a line of ours; in a question the last thing read is ours."""

import datetime
from collections.abc import Sequence

from rich.cells import chop_cells
from rich.text import Text
from tabwarden.authority.describing import visible

from tabwarden_adapters.approvals import rendered
from tabwarden_adapters.host import ApprovalKind, ApprovalRequest, LogEntry, Question, QuestionCounts, Reply

PROMPT = "Your answer: "
HELP = "Keys, each with Enter: r revokes, p opens a private window, q ends the host and its browser."
_BAR = "  │ "
_WORDS = 600  # characters of what an agent says: what a person reads before an answer
_NAME = 200  # of an origin; the end of a longer one is shown too, where its domain is
_TYPE = 40
_TEXT, _LINES = 4000, 12  # of one entry: a screenful, so that the question before it is still seen

_ASKS = {
    ApprovalKind.SITE: "An agent asks whether it may work on a site: read its pages, and act on them.",
    ApprovalKind.RISK: "An agent asks whether it may do something risky here: buy, delete, download, or fill "
    "in a form that goes to another site.",
    ApprovalKind.NAVIGATE: "An agent asks whether it may go to a site where it has not been before.",
}
_HANDOFF = (
    "An agent waits until you have done a step yourself, in the browser window: a login, a CAPTCHA, a "
    "one-time code. Say what became of it."
)
KEYS = {"y": Reply.YES, "c": Reply.CONFIRM, "d": Reply.DONE, "n": Reply.NO}
_MEANINGS = {
    Reply.YES: "yes",
    Reply.CONFIRM: "yes, and ask me again before each risky action",
    Reply.DONE: "done",
    Reply.NO: "no",
}


def question(asked: Question, more: int, width: int) -> str:
    """Everything a person should know before answering; `more` others wait behind it."""
    request = asked.request
    lines: list[Text] = [Text(), Text("─" * width, style="dim")]
    words = request.summary if isinstance(request, ApprovalRequest) else request.reason
    lines.append(Text("The agent says:" if words else "The agent says nothing of it.", style="dim"))
    if words:
        lines += _barred([visible(words, _WORDS)], width)
    lines.append(
        Text(_ASKS[request.kind] if isinstance(request, ApprovalRequest) else _HANDOFF, style="bold")
    )
    lines.append(Text.assemble(("site, as the engine names it: ", "bold"), _name(request.origin)))
    if more:
        lines.append(Text(f"{more} more wait behind this one.", style="dim"))
    for key, reply in KEYS.items():
        if reply in asked.replies:
            lines.append(Text.assemble("  ", (key, "bold"), f"  {_MEANINGS[reply]}"))
    lines.append(Text.assemble("  ", ("r", "bold"), "  no to this and to everything from now on: revoke"))
    return rendered(lines, width)


def entry(seen: LogEntry, unclean: int, width: int) -> str:
    """One entry of what models were sent. `unclean` counts those that had something left to scrub."""
    head = Text.assemble(
        (_clock(seen.at_ms), "dim"),
        "  sent to a model: ",
        (visible(seen.type[:_TYPE], _TYPE), "yellow"),
        f"  {seen.tokens} tokens  ",
        (_name(seen.origin), "bold"),
    )
    lines = [head]
    if seen.text is None:
        lines.append(Text("  The text is withheld: it could not be looked through.", style="dim"))
    else:
        lines += _text(seen.text, width)
    if seen.clean is False:
        lines.append(
            Text(
                f"  Scrubbed here: something that the engine had let through ({unclean} so far).", style="red"
            )
        )
    return rendered(lines, width)


def welcome(facts: Sequence[tuple[str, str]], width: int) -> str:
    """The first lines."""
    lines = [Text("tabwarden host", style="bold")]
    lines += [Text.assemble((f"{name}: ", "bold"), text) for name, text in facts]
    lines.append(Text(HELP, style="dim"))
    return rendered(lines, width)


def said(text: str, width: int) -> str:
    """A line of ours."""
    return rendered([Text(text)], width)


def counted(counts: QuestionCounts) -> str:
    """What to say of questions that nobody saw."""
    return f"Answered no without asking you: {counts.unasked} (too many, or you had just said no)."


def _text(text: str, width: int) -> list[Text]:
    head = text[:_TEXT]
    plain = [visible(line, _TEXT)[1:-1] for line in head.split("\n", _LINES)[:_LINES]]
    lines = _barred(plain, width)
    if len(lines) > _LINES or len(text) > _TEXT or text.count("\n", 0, _TEXT) >= _LINES:
        lines = [*lines[:_LINES], Text(f"  cut here; {len(text)} characters in all", style="dim")]
    return lines


def _barred(texts: Sequence[str], width: int) -> list[Text]:
    """Cut here, no terminal wraps them."""
    return [
        Text.assemble((_BAR, "dim"), (chunk, "yellow"))
        for text in texts
        for chunk in (chop_cells(text, width - len(_BAR) - 1) or [""])
    ]


def _name(origin: str) -> str:
    return visible(origin, _NAME)[1:-1]


def _clock(at_ms: int) -> str:
    """The engine's time, which may be any number."""
    try:
        return datetime.datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "--:--:--"
