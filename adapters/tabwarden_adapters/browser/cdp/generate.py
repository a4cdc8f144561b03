"""Writes `generated/` from the npm package `devtools-protocol` (its `json/` folder).

    npm pack devtools-protocol@0.0.1734725 && tar xzf devtools-protocol-*.tgz
    python -m tabwarden_adapters.browser.cdp.generate package

Only what `SELECTION` names is written, and the types that it needs. The output depends on nothing but
the package and this file.

Enumerations are `Literal` where we send them. Where Chromium sends them they are plain `str`: a newer
Chromium that adds a value must not make an event unreadable.
"""

import argparse
import json
import keyword
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

SELECTION: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "Accessibility": (("getPartialAXTree",), ()),
    "Animation": (("setPlaybackRate",), ()),
    "Browser": (("close", "getVersion", "setDownloadBehavior"), ()),
    "DOM": (
        (
            "describeNode",
            "disable",
            "enable",
            "focus",
            "getContentQuads",
            "resolveNode",
            "scrollIntoViewIfNeeded",
        ),
        (),
    ),
    "DOMSnapshot": (("captureSnapshot",), ()),
    "Emulation": (("setFocusEmulationEnabled",), ()),
    "Fetch": (
        ("continueRequest", "continueWithAuth", "disable", "enable", "failRequest"),
        ("authRequired", "requestPaused"),
    ),
    "Input": (("dispatchKeyEvent", "dispatchMouseEvent", "insertText"), ()),
    "Inspector": (("enable",), ("targetCrashed", "targetReloadedAfterCrash")),
    "Network": (("disable", "enable", "setBypassServiceWorker"), ("loadingFailed",)),
    "Overlay": (("disable", "enable", "highlightRect"), ()),
    "Page": (
        (
            "addScriptToEvaluateOnNewDocument",
            "captureScreenshot",
            "close",
            "createIsolatedWorld",
            "enable",
            "getFrameTree",
            "getLayoutMetrics",
            "getNavigationHistory",
            "handleJavaScriptDialog",
            "navigate",
            "navigateToHistoryEntry",
            "reload",
            "removeScriptToEvaluateOnNewDocument",
            "setInterceptFileChooserDialog",
            "setLifecycleEventsEnabled",
            "setPrerenderingAllowed",
            "stopLoading",
            "waitForDebugger",
        ),
        (
            "documentOpened",
            "fileChooserOpened",
            "frameAttached",
            "frameNavigated",
            "frameRequestedNavigation",
            "frameStartedNavigating",
            "frameStoppedLoading",
            "javascriptDialogOpening",
            "lifecycleEvent",
            "navigatedWithinDocument",
            "windowOpen",
        ),
    ),
    "Runtime": (
        ("callFunctionOn", "evaluate", "releaseObjectGroup", "runIfWaitingForDebugger"),
        (),
    ),
    "Storage": (("clearDataForOrigin",), ()),
    "Target": (
        (
            "activateTarget",
            "attachToTarget",
            "closeTarget",
            "createBrowserContext",
            "createTarget",
            "detachFromTarget",
            "disposeBrowserContext",
            "getTargetInfo",
            "getTargets",
            "setAutoAttach",
            "setDiscoverTargets",
        ),
        ("attachedToTarget", "detachedFromTarget", "targetCreated", "targetDestroyed"),
    ),
}

PACKAGE = "tabwarden_adapters.browser.cdp"
PRIMITIVES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "any": "Any",
    "object": "dict[str, Any]",
    "binary": "str",
}
Json = dict[str, Any]


def snake(name: str) -> str:
    """`frameId` -> `frame_id`, `getPartialAXTree` -> `get_partial_ax_tree`; keywords get a `_`."""
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()
    return name + "_" if keyword.iskeyword(name) else name


def camel(name: str) -> str:
    """What msgspec's `rename="camel"` makes of a field's name."""
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def pascal(name: str) -> str:
    """`frameNavigated` -> `FrameNavigated`."""
    return name[0].upper() + name[1:]


class Protocol:
    """The selected part of the protocol: its domains, and which way each type travels."""

    def __init__(self, files: list[Json], selection: Mapping[str, tuple[tuple[str, ...], ...]]) -> None:
        self.domains: dict[str, Json] = {d["domain"]: d for file in files for d in file["domains"]}
        self.selection = selection
        self.types: dict[str, Json] = {
            f"{name}.{kind['id']}": kind
            for name, domain in self.domains.items()
            for kind in domain.get("types", [])
        }
        self.incoming: set[str] = set()
        self.outgoing: set[str] = set()
        for domain in selection:
            for command in self.chosen(domain, "commands"):
                self._reach(domain, command.get("parameters", []), self.outgoing)
                self._reach(domain, command.get("returns", []), self.incoming)
            for event in self.chosen(domain, "events"):
                self._reach(domain, event.get("parameters", []), self.incoming)

    def chosen(self, domain: str, kind: str) -> list[Json]:
        """The selected commands or events of a domain, in the order of the selection."""
        names = self.selection[domain][0 if kind == "commands" else 1]
        known = {item["name"]: item for item in self.domains[domain].get(kind, [])}
        return [known[name] for name in names]

    def _reach(self, domain: str, properties: list[Json], seen: set[str]) -> None:
        for item in properties:
            if item.get("deprecated"):
                continue
            reference = item.get("$ref") or item.get("items", {}).get("$ref")
            if reference is None:
                continue
            full = self.full_name(domain, reference)
            if full not in seen:
                seen.add(full)
                kind = self.types[full]
                self._reach(full.split(".")[0], [*kind.get("properties", []), kind], seen)

    @staticmethod
    def full_name(domain: str, reference: str) -> str:
        """A type's name with its domain."""
        return reference if "." in reference else f"{domain}.{reference}"

    def modules(self) -> list[str]:
        """Every domain that gets a module: the selected ones and those that only lend a type."""
        lent = {name.split(".")[0] for name in self.incoming | self.outgoing if self._has_text(name)}
        return sorted(lent | set(self.selection))

    def _has_text(self, full: str) -> bool:
        kind = self.types[full]
        return "properties" in kind or ("enum" in kind and full in self.outgoing)


class Module:
    """The text of one domain's module."""

    def __init__(self, protocol: Protocol, domain: str) -> None:
        self.protocol = protocol
        self.domain = domain
        self.imports: set[str] = set()

    def annotation(self, item: Json, *, sent: bool) -> str:
        """The Python type of a property. `sent` says that only we write it."""
        if "$ref" in item:
            return self._reference(self.protocol.full_name(self.domain, item["$ref"]), sent=sent)
        if item["type"] == "array":
            return f"list[{self.annotation(item['items'], sent=sent)}]" if "items" in item else "list[Any]"
        if "enum" in item and sent:
            return self._literal(item["enum"])
        return PRIMITIVES[item["type"]]

    def _reference(self, full: str, *, sent: bool) -> str:
        kind = self.protocol.types[full]
        domain, name = full.split(".")
        if "enum" in kind:
            if not sent:
                return "str"
        elif "properties" not in kind:
            outer, self.domain = self.domain, domain
            try:
                return self.annotation(kind, sent=sent)
            finally:
                self.domain = outer
        if domain == self.domain:
            return name
        self.imports.add(snake(domain))
        return f"{snake(domain)}.{name}"

    @staticmethod
    def _literal(values: list[str]) -> str:
        return "Literal[" + ", ".join(json.dumps(value) for value in values) + "]"

    def render(self) -> str:
        """The module's lines after its header."""
        domain = self.domain
        commands = self.protocol.chosen(domain, "commands") if domain in self.protocol.selection else []
        events = self.protocol.chosen(domain, "events") if domain in self.protocol.selection else []
        blocks = [
            *self._types(),
            *(self._record(event, kind="Event", sent=False) for event in events),
        ]
        for command in commands:
            if command.get("returns"):
                result = {**command, "name": command["name"] + "Result", "parameters": command["returns"]}
                blocks.append(self._record(result, kind="Record", sent=False))
            blocks.append(self._command(command))
        return "\n\n\n".join(blocks) + "\n"

    def _types(self) -> Iterator[str]:
        used = self.protocol.incoming | self.protocol.outgoing
        for full in sorted(name for name in used if name.split(".")[0] == self.domain):
            kind = self.protocol.types[full]
            if "enum" in kind and full in self.protocol.outgoing:
                yield f"{kind['id']} = {self._literal(kind['enum'])}"
            elif "properties" in kind:
                record = {**kind, "name": kind["id"], "parameters": kind["properties"]}
                yield self._record(record, kind="Record", sent=full not in self.protocol.incoming)

    def _record(self, item: Json, *, kind: str, sent: bool) -> str:
        wire = f"{self.domain}.{item['name']}"
        lines = [f"class {pascal(item['name'])}({kind}, frozen=True, kw_only=True):"]
        lines += self._docstring(item, wire)
        if kind == "Event":
            lines += [f'    METHOD: ClassVar[str] = "{wire}"', ""]
        for prop in item.get("parameters", []):
            if prop.get("deprecated"):
                continue
            name = snake(prop["name"])
            annotation = self.annotation(prop, sent=sent)
            optional = prop.get("optional", False)
            line = f"    {name}: {annotation}{' | None' if optional else ''}"
            if camel(name) != prop["name"]:
                default = "default=None, " if optional else ""
                line += f' = field({default}name="{prop["name"]}")'
            elif optional:
                line += " = None"
            lines.append(line)
        while lines[-1] == "":
            lines.pop()
        return "\n".join(lines)

    def _command(self, command: Json) -> str:
        parameters = [prop for prop in command.get("parameters", []) if not prop.get("deprecated")]
        arguments, values = [], []
        for prop in sorted(parameters, key=lambda prop: prop.get("optional", False)):
            name = snake(prop["name"])
            optional = prop.get("optional", False)
            annotation = self.annotation(prop, sent=True)
            arguments.append(f"    {name}: {annotation}{' | None = None' if optional else ''},")
            values.append(f'            "{prop["name"]}": {name},')
        wire = f"{self.domain}.{command['name']}"
        result = pascal(command["name"]) + "Result" if command.get("returns") else "None"
        name = snake(command["name"])
        if not parameters:
            lines = [f"def {name}() -> Command[{result}]:", *self._docstring(command, wire)[:-1]]
            lines.append(f'    return Command("{wire}", {{}}, {result})')
            return "\n".join(lines)
        lines = [f"def {name}(", "    *,", *arguments, f") -> Command[{result}]:"]
        lines += self._docstring(command, wire)[:-1]
        lines += ["    return Command(", f'        "{wire}",', "        {", *values, "        },"]
        lines += [f"        {result},", "    )"]
        return "\n".join(lines)

    @staticmethod
    def _docstring(item: Json, wire: str) -> list[str]:
        first = re.split(r"(?<=[.!?])\s", " ".join(item.get("description", "").split()))[0]
        text = f"`{wire}`. {first}".strip().replace("\\", "/").replace('"""', "'''")
        lines = textwrap.wrap(text, 96, break_long_words=False)
        if len(lines) == 1:
            return [f'    """{lines[0]}"""', ""]
        return ['    """' + lines[0], *("    " + line for line in lines[1:]), '    """', ""]


def header(version: str, domain: str) -> str:
    """The first lines of a generated module."""
    return (
        f'"""CDP domain {domain}. Generated by `{PACKAGE}.generate` from devtools-protocol {version}:\n'
        'do not edit; change the selection there and generate again."""\n'
    )


def generate(
    package: Path, selection: Mapping[str, tuple[tuple[str, ...], ...]] = SELECTION
) -> dict[str, str]:
    """File name -> text, from an unpacked `devtools-protocol` package.

    Raises KeyError when the package lacks something that is selected.
    """
    version = json.loads((package / "package.json").read_text("utf-8"))["version"]
    names = ("browser_protocol.json", "js_protocol.json")
    files = [json.loads((package / "json" / name).read_text("utf-8")) for name in names]
    protocol = Protocol(files, selection)
    written: dict[str, str] = {}
    for domain in protocol.modules():
        module = Module(protocol, domain)
        body = module.render()
        typing = [name for name in ("Any", "ClassVar", "Literal") if re.search(rf"\b{name}\b", body)]
        basis = [name for name in ("Command", "Event", "Record") if re.search(rf"\b{name}\b", body)]
        lines = [header(version, domain), "from __future__ import annotations\n"]
        if typing:
            lines.append(f"from typing import {', '.join(typing)}\n")
        if "= field(" in body:
            lines.append("from msgspec import field\n")
        lines.append(f"from {PACKAGE}.command import {', '.join(basis)}")
        if module.imports:
            lines.append(f"from {PACKAGE}.generated import {', '.join(sorted(module.imports))}")
        written[f"{snake(domain)}.py"] = "\n".join(lines) + "\n\n\n" + body
    written["__init__.py"] = (
        f'"""Typed bindings for CDP. Generated by `{PACKAGE}.generate` from devtools-protocol {version}."""\n'
    )
    return written


def main() -> None:
    """`python -m tabwarden_adapters.browser.cdp.generate PATH_TO_devtools-protocol`"""
    parser = argparse.ArgumentParser(description="Write the typed CDP bindings.")
    parser.add_argument("package", type=Path, help="unpacked npm package devtools-protocol")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("generated"))
    options = parser.parse_args()
    options.output.mkdir(exist_ok=True)
    for stale in options.output.glob("*.py"):
        stale.unlink()
    for name, text in generate(options.package).items():
        (options.output / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
