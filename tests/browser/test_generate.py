"""The generator of the bindings, on a small protocol and, where the npm package is there, on the real one."""

import importlib.util
import json
import os
import pkgutil
import sys
from pathlib import Path

import msgspec
import pytest
from tabwarden_adapters.browser.cdp import Event, Record, generated
from tabwarden_adapters.browser.cdp.generate import SELECTION, camel, generate, snake
from tabwarden_adapters.browser.cdp.generated import fetch, page

FOLDER = Path(generated.__path__[0])
VERSION = "0.0.1734725"

SMALL = {
    "domains": [
        {
            "domain": "Lamp",
            "types": [
                {"id": "BulbId", "type": "string"},
                {"id": "Colour", "type": "string", "enum": ["red", "green"]},
                {
                    "id": "Bulb",
                    "type": "object",
                    "properties": [
                        {"name": "bulbId", "$ref": "BulbId"},
                        {"name": "colour", "$ref": "Colour", "optional": True},
                        {"name": "homeURL", "type": "string", "optional": True},
                        {"name": "old", "type": "string", "deprecated": True},
                    ],
                },
                {"id": "Unused", "type": "object", "properties": [{"name": "x", "type": "any"}]},
            ],
            "commands": [
                {
                    "name": "turnOn",
                    "description": "Turns it on. Really.",
                    "parameters": [
                        {"name": "from", "type": "integer", "optional": True},
                        {"name": "colour", "$ref": "Colour"},
                    ],
                    "returns": [{"name": "bulbs", "type": "array", "items": {"$ref": "Bulb"}}],
                },
                {"name": "notChosen"},
            ],
            "events": [{"name": "turnedOn", "parameters": [{"name": "bulb", "$ref": "Bulb"}]}],
        }
    ]
}


@pytest.fixture
def package(tmp_path):
    (tmp_path / "json").mkdir()
    (tmp_path / "package.json").write_text('{"version":"9.9.9"}')
    (tmp_path / "json" / "browser_protocol.json").write_text(json.dumps(SMALL))
    (tmp_path / "json" / "js_protocol.json").write_text('{"domains":[]}')
    return tmp_path


@pytest.fixture
def importer(monkeypatch):
    def load(path):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, path.stem, module)
        spec.loader.exec_module(module)
        return module

    return load


def test_a_small_protocol(package, importer):
    chosen = {"Lamp": (("turnOn",), ("turnedOn",))}
    files = generate(package, chosen)
    assert sorted(files) == ["__init__.py", "lamp.py"]
    assert generate(package, chosen) == files
    text = files["lamp.py"]
    assert "devtools-protocol 9.9.9" in text
    assert "Unused" not in text
    assert "notChosen" not in text
    assert "old" not in text
    path = package / "lamp.py"
    path.write_text(text)
    module = importer(path)
    assert module.turn_on(colour="red", from_=3).method == "Lamp.turnOn"
    assert module.turn_on(colour="red", from_=3).to_json() == {"colour": "red", "from": 3}
    assert module.turn_on(colour="red").to_json() == {"colour": "red"}
    event = module.TurnedOn.from_json({"bulb": {"bulbId": "b", "homeURL": "u", "colour": "blue"}})
    assert (event.bulb.home_url, event.bulb.colour) == ("u", "blue")


def test_what_is_selected_but_not_there_is_an_error(package):
    with pytest.raises(KeyError):
        generate(package, {"Lamp": (("explode",), ())})


@pytest.mark.parametrize(
    ("name", "python"),
    [("frameId", "frame_id"), ("getPartialAXTree", "get_partial_ax_tree"), ("from", "from_"), ("DOM", "dom")],
)
def test_names(name, python):
    assert snake(name) == python
    assert camel("frame_id") == "frameId"


def test_every_generated_record_can_be_resolved():
    count = 0
    for module in pkgutil.iter_modules(generated.__path__):
        found = importlib.import_module(f"{generated.__name__}.{module.name}")
        for kind in vars(found).values():
            if isinstance(kind, type) and issubclass(kind, Record) and kind not in (Record, Event):
                msgspec.inspect.type_info(kind)
                count += 1
    assert count > 50


def test_every_generated_file_says_where_it_is_from():
    for path in FOLDER.glob("*.py"):
        text = path.read_text("utf-8")
        assert f"devtools-protocol {VERSION}" in text.partition('"""\n')[0]


def test_values_of_a_newer_chromium_can_be_read():
    event = page.NavigatedWithinDocument.from_json(
        {"frameId": "F", "url": "u", "navigationType": "a new kind", "a new field": 1}
    )
    assert event.navigation_type == "a new kind"
    pattern = fetch.RequestPattern(url_pattern="*", resource_type="Document")
    assert fetch.enable(patterns=[pattern]).to_json() == {
        "patterns": [{"urlPattern": "*", "resourceType": "Document"}]
    }


def test_what_is_checked_in_is_what_the_package_gives():
    """With `TABWARDEN_DEVTOOLS_PROTOCOL` naming the unpacked package; else the set of files is compared."""
    checked_in = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.py")}
    package = os.environ.get("TABWARDEN_DEVTOOLS_PROTOCOL")
    if package:
        assert generate(Path(package)) == checked_in
    else:
        assert {f"{snake(domain)}.py" for domain in SELECTION} <= set(checked_in)
