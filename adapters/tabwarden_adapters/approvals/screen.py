"""What a terminal shows of a question. What the agent wrote stands apart, before what we say, behind a bar on
each of its lines; so none of it can pass for a line of ours, and the last thing read is ours."""

import io
from collections.abc import Sequence

from rich.cells import chop_cells
from rich.console import Console
from rich.text import Text
from tabwarden.approval import ApprovalRequest, Reach
from tabwarden.authority.describing import visible
from tabwarden.limits import MAX_APPROVAL_MINUTES

_BAR = "  │ "
_SHOWN = 512  # characters of a name or origin: all that are real are shorter


def question(request: ApprovalRequest, more: int, width: int) -> str:
    """Everything a person should know before agreeing; `more` others wait behind it."""
    lines: list[Text] = [Text(), Text("─" * width, style="dim")]
    written = [fact for fact in request.facts if fact.by_agent]
    if written:
        lines.append(Text("The agent wrote:", style="dim"))
    for fact in written:
        lines.append(Text(f"  {_plain(fact.label)}:"))
        # Its quotes and escapes were made by `describing.visible`; cut here, no terminal wraps it.
        lines += [
            Text.assemble((_BAR, "dim"), (chunk, "yellow"))
            for chunk in chop_cells(_shown(fact.text), width - len(_BAR) - 1)
        ]
    caller = request.caller
    who = (
        "An agent (shared pairing)" if caller.principal_id is None else f"Agent {_plain(caller.principal_id)}"
    )
    ours = [(who, f"asks for {_plain(request.action)}: {request.summary}")]
    ours += [(fact.label, fact.text) for fact in request.facts if not fact.by_agent]
    if request.origin is not None:
        ours.append(("where", request.origin))
    ours.append(("tab", "the one in front, if any" if request.session_id is None else request.session_id))
    ours.append(("asked by rule", request.rule))
    lines += [Text.assemble((f"{_plain(name)}: ", "bold"), _plain(text)) for name, text in ours]
    if more:
        lines.append(Text(f"{more} more wait behind this one.", style="dim"))
    lines += _choices(request)
    return rendered(lines, width)


def said(text: str, width: int) -> str:
    """One line of ours."""
    return rendered([Text(text)], width)


def _choices(request: ApprovalRequest) -> list[Text]:
    scope = _plain(request.policy_scope)
    choices = [("y", "yes, this once")]
    if Reach.SESSION in request.reaches:
        choices.append(("s", f"yes, and to any {scope} of this agent in this tab, wherever it leads"))
    if Reach.ORIGIN in request.reaches:
        at = _plain(request.origin or "")
        choices.append(
            ("o MINUTES", f"yes, and to any {scope} of this agent at {at}, for 1 to {MAX_APPROVAL_MINUTES}")
        )
    choices.append(("n", "no"))
    return [Text.assemble("  ", (key, "bold"), f"  {meaning}") for key, meaning in choices]


def _shown(text: str) -> str:
    """A text of the agent's is made visible where requests are made; one that was not is here."""
    return text if text.isprintable() else _plain(text)


def _plain(text: str) -> str:
    return visible(text, _SHOWN)[1:-1]


def rendered(lines: Sequence[Text], width: int) -> str:
    """With the terminal's styles."""
    out = io.StringIO()
    console = Console(
        file=out,
        force_terminal=True,
        width=width,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )
    for line in lines:
        console.print(line)
    return out.getvalue()
