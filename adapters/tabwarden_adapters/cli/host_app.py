"""`tabwarden host`: its flags."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import trio
from cyclopts import Parameter

from tabwarden_adapters.cli.output import typed_failures
from tabwarden_adapters.credentials import close_process_to_others


def _list(flag: str, text: str) -> Parameter:
    return Parameter(name=flag, negative="", help=f"{text}; repeat for more.")


def host(
    *,
    config: Annotated[
        Path | None, Parameter(name="--config", help="A TOML file with the same settings.")
    ] = None,
    allow: Annotated[
        list[str] | None,
        _list("--allow", "A site where agents may work, as example.org or https://host:port"),
    ] = None,
    ask: Annotated[list[str] | None, _list("--ask", "A site where you are asked first")] = None,
    off: Annotated[
        list[str] | None, _list("--off", "A host where they may not, whatever a policy says; *.host too")
    ] = None,
    sensitive: Annotated[
        list[str] | None, _list("--sensitive", "A host whose sensitive pages do not pause an agent")
    ] = None,
    policy: Annotated[
        Path | None,
        Parameter(name="--policy", help="A signed policy: what it does not allow is off, all else is asked."),
    ] = None,
    home: Annotated[
        Path | None, Parameter(name="--home", help="The folder of host.json, in place of WB_HOME.")
    ] = None,
    headless: Annotated[
        bool | None, Parameter(name="--headless", help="Run Chromium without a window.")
    ] = None,
) -> int:
    """Start a browser for engines that speak the host control protocol, and ask you at this terminal.

    What no flag, file or policy names is off. Ends with q, SIGINT or SIGTERM, or the browser's last window.
    Any program on this machine, also of other users, can use the browser's debugging port meanwhile.
    """
    # Only here: the server's libraries would slow down every other command.
    from tabwarden_adapters.cli.host_run import host as run
    from tabwarden_adapters.cli.host_settings import HostSettings, load_host_settings

    with typed_failures() as exit_:
        settings = load_host_settings(config) if config else HostSettings()
        given: dict[str, Any] = {
            "allow": tuple(allow) if allow else None,
            "ask": tuple(ask) if ask else None,
            "off": tuple(off) if off else None,
            "sensitive": tuple(sensitive) if sensitive else None,
            "policy": str(policy.absolute()) if policy else None,
            "home": str(home.absolute()) if home else None,
            "headless": headless,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        settings = msgspec.structs.replace(settings, **changes)
        close_process_to_others()
        trio.run(run, settings)
    return exit_.status
