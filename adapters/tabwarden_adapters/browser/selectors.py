"""What an agent may call an element by: a small part of CSS, or a `ref` that `inspect` gave out.

A selector is parsed, judged as a tree and written anew: the text that an agent sends never reaches a page.
Attributes are an allow-list, because a selector that matches or does not is an answer: `[value^="a"]`
would read, letter by letter, what `inspect` leaves out.
Sources: Selectors Level 4, CSSOM "serialize an identifier".
"""

import re
from dataclasses import dataclass
from typing import Final

from cssselect import SelectorError, parser
from tabwarden.errors import ActionError, Code

MAX_CHARACTERS: Final = 512  # actions.Selector
MAX_COMPOUNDS: Final = 24  # what page/path.js may build, and more
MAX_SIMPLE: Final = 48  # tests in all: they multiply what a page has to try
MAX_NAME: Final = 256  # one id, class or attribute value

TAG = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}\Z")
INDEX = re.compile(r"[1-9][0-9]{0,4}\Z")
REF = re.compile(r"r([0-9a-f]{16})\.([1-9][0-9]{0,8})\Z")
CONTROL = re.compile("[\u0000-\u001f\u007f-\u009f\ufffd]")
# cssselect decodes `\\` and `\5c` once too often: what follows them would be read as another escape.
BACKSLASH = re.compile(r"\\(?:\\|0{0,4}5c)", re.IGNORECASE)

ATTRIBUTES: Final = frozenset(
    (
        *("id", "class", "name", "type", "role", "for", "title", "alt", "placeholder", "lang", "dir", "rel"),
        *("checked", "disabled", "hidden", "multiple", "open", "readonly", "required", "selected"),
        *("data-testid", "data-test-id", "data-test", "data-cy", "data-qa", "data-role", "data-action"),
        *("aria-label", "aria-labelledby", "aria-controls", "aria-current", "aria-checked", "aria-disabled"),
        *("aria-expanded", "aria-haspopup", "aria-hidden", "aria-level", "aria-modal", "aria-pressed"),
        *("aria-required", "aria-selected", "aria-sort"),
    )
)
OPERATORS: Final = frozenset(("=", "~=", "|=", "^=", "$=", "*="))
NUMBERED: Final = frozenset(("nth-child", "nth-of-type", "nth-last-child", "nth-last-of-type"))
PLAIN: Final = frozenset(("first-child", "last-child", "first-of-type", "last-of-type"))
COMBINATORS: Final = {" ": " ", ">": " > ", "+": " + "}


@dataclass(frozen=True, slots=True)
class Css:
    """A selector in our own writing."""

    selector: str

    def argument(self) -> dict[str, object]:
        """The value that page/find.js takes."""
        return {"css": self.selector}


@dataclass(frozen=True, slots=True)
class Ref:
    """An element by its number in one document."""

    document: str
    number: int

    def argument(self) -> dict[str, object]:
        """The value that page/find.js takes."""
        return {"document": self.document, "number": self.number}


Target = Css | Ref


def target(text: str) -> Target:
    """What an action's `selector` means: a `ref` or a selector. Raises as `canonical_selector` does.

    Whether a `ref` is stale only its document can tell: find.js says so, and the code is `stale-ref`.
    """
    found = REF.match(text)
    if found:
        return Ref(found[1], int(found[2]))
    return Css(canonical_selector(text))


def canonical_selector(text: str) -> str:
    """The selector in our own writing; it means the same, and gives itself when given again.

    Raises `ActionError`: `invalid-arguments` for what is no selector, `target-denied` for one outside the
    subset or above its bounds.
    """
    if len(text) > MAX_CHARACTERS or CONTROL.search(text.strip()) or BACKSLASH.search(text):
        raise ActionError(Code.TARGET_DENIED)
    try:
        text.encode()  # a lone surrogate has no UTF-8
        parsed = parser.parse(text)
    except (SelectorError, UnicodeEncodeError, RecursionError):
        raise ActionError(Code.INVALID_ARGUMENTS) from None
    if len(parsed) != 1 or parsed[0].pseudo_element is not None:
        raise ActionError(Code.TARGET_DENIED)
    writer = _Writer()
    return writer.complex(parsed[0].parsed_tree)


class _Writer:
    """Writes one tree, and counts what it writes."""

    def __init__(self) -> None:
        self._compounds = 0
        self._simple = 0

    def complex(self, tree: parser.Tree) -> str:
        parts: list[str] = []
        while isinstance(tree, parser.CombinedSelector):
            combinator = COMBINATORS.get(tree.combinator)
            if combinator is None:
                raise ActionError(Code.TARGET_DENIED)
            parts += [self.compound(tree.subselector), combinator]
            tree = tree.selector
        parts.append(self.compound(tree))
        return "".join(reversed(parts))

    def compound(self, tree: parser.Tree, *, negated: bool = False) -> str:
        self._compounds += 1
        if self._compounds > MAX_COMPOUNDS:
            raise ActionError(Code.TARGET_DENIED)
        tests: list[str] = []
        while not isinstance(tree, parser.Element):
            self._simple += 1
            if self._simple > MAX_SIMPLE:
                raise ActionError(Code.TARGET_DENIED)
            # The rest of what cssselect can parse has no `selector` to go on with, or is not allowed.
            if isinstance(tree, parser.Hash):
                tests.append("#" + identifier(tree.id))
            elif isinstance(tree, parser.Class):
                tests.append("." + identifier(tree.class_name))
            elif isinstance(tree, parser.Attrib):
                tests.append(_attribute(tree))
            elif isinstance(tree, parser.Pseudo) and tree.ident in PLAIN:
                tests.append(":" + tree.ident)
            elif isinstance(tree, parser.Function) and tree.name in NUMBERED:
                tests.append(f":{tree.name}({_index(tree)})")
            elif isinstance(tree, parser.Negation) and not negated:
                tests.append(f":not({self.compound(tree.subselector, negated=True)})")
            else:
                raise ActionError(Code.TARGET_DENIED)
            tree = tree.selector
        name = tree.element
        if tree.namespace is not None or (name is not None and not TAG.match(name)):
            raise ActionError(Code.TARGET_DENIED)
        return (name or ("" if tests else "*")) + "".join(reversed(tests))


def _index(function: parser.Function) -> str:
    values = [token.value for token in function.arguments if token.type == "NUMBER"]
    if len(function.arguments) != 1 or len(values) != 1 or not INDEX.match(values[0] or ""):
        raise ActionError(Code.TARGET_DENIED)
    return str(values[0])


def _attribute(attribute: parser.Attrib) -> str:
    name = attribute.attrib.lower() if attribute.attrib.isascii() else ""
    if attribute.namespace is not None or name not in ATTRIBUTES or getattr(attribute, "flag", None):
        raise ActionError(Code.TARGET_DENIED)
    if attribute.operator == "exists":
        return f"[{name}]"
    value = None if attribute.value is None else attribute.value.value
    if attribute.operator not in OPERATORS or value is None:
        raise ActionError(Code.TARGET_DENIED)
    _check(value)
    return f'[{name}{attribute.operator}"{value.replace(chr(34), chr(92) + chr(34))}"]'


def _check(value: str) -> None:
    if len(value) > MAX_NAME or CONTROL.search(value) or "\\" in value:
        raise ActionError(Code.TARGET_DENIED)


def identifier(value: str) -> str:
    """`value` as a CSS identifier (CSSOM). Raises `ActionError` for an empty or a long one, and for control
    characters."""
    _check(value)
    if not value:
        raise ActionError(Code.TARGET_DENIED)
    written = []
    for index, character in enumerate(value):
        leads = index == 0 or (index == 1 and value[0] == "-")
        if character.isascii() and character.isdigit() and leads:
            written.append(f"\\{ord(character):x} ")
        elif character == "-" and index == 0 and (len(value) == 1 or value[1] == "-"):
            written.append("\\-")
        elif character.isascii() and not (character.isalnum() or character in "-_"):
            written.append("\\" + character)
        else:
            written.append(character)
    return "".join(written)
