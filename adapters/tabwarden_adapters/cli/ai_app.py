"""The flags of `tabwarden ai`."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.console import Console
from rich.text import Text

from tabwarden_adapters.cli.flags import Json
from tabwarden_adapters.cli.model_settings import KEY_PROTECTOR
from tabwarden_adapters.cli.output import emit, typed_failures
from tabwarden_adapters.credentials import close_process_to_others

ai_app = App(name="ai", help="Store the key of the AI gateway, which policies and settings never hold.")

Credential = Annotated[
    Path | None, Parameter(name="--credential", help="The file of the sealed key, as in the settings.")
]


@ai_app.command(name="set-key")
def set_key(
    url: str,
    /,
    *,
    credential: Credential = None,
    protector: Annotated[
        str,
        Parameter(name="--protector", help="What seals the key: key-file (default), tpm2, secret-service, …"),
    ] = KEY_PROTECTOR,
    json: Json = False,
) -> int:
    """Store the API key of the gateway at URL, for a broker that runs or will: asked at the terminal, or the
    first line of standard input.

    It is sent to that scheme, host and port and nowhere else, whatever a policy or settings say later.
    """
    from tabwarden_adapters.cli import ai_work as work  # loads the gateway, which no other command needs

    with typed_failures() as exit_:
        close_process_to_others()
        _show(work.set_key(url, credential, protector), as_json=json)
    return exit_.status


@ai_app.command(name="remove-key")
def remove_key(*, credential: Credential = None, json: Json = False) -> int:
    """Delete the stored key. It stays good at the gateway: have it revoked there."""
    from tabwarden_adapters.cli import ai_work as work

    with typed_failures() as exit_:
        _show(work.remove_key(credential), as_json=json)
    return exit_.status


def _show(facts: dict[str, Any], *, as_json: bool) -> None:
    def render(console: Console) -> None:
        for name, value in facts.items():
            console.print(Text.assemble((f"{name}: ", "bold"), str(value)))

    emit(facts, render, as_json=as_json)
