"""Bytes to a policy document: strict JSON, then types, then meaning. One message, which names the field."""

import re
from typing import Any, TypeVar

import msgspec
from tabwarden.errors import ConfigurationError, MalformedError
from tabwarden.protocol.codec import parse_json

from tabwarden_adapters.policy.checks import check_meaning
from tabwarden_adapters.policy.document import Part, PolicyDocument
from tabwarden_adapters.policy.names import nearest

T = TypeVar("T", bound=Part)

MAX_DOCUMENT_BYTES = 16 * 1024 * 1024  # 20,000 grants of 800 bytes

_AT = " - at `$"  # how msgspec ends its messages
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_STEP = re.compile(r"\.([A-Za-z0-9]+)|\[[0-9]+\]")


def read_document(data: bytes) -> PolicyDocument:
    """The document in `data` (UTF-8 JSON). Raises `ConfigurationError` with one message naming the field."""
    if len(data) > MAX_DOCUMENT_BYTES:
        raise ConfigurationError(f"the policy is larger than {MAX_DOCUMENT_BYTES >> 20} MiB: is it a policy?")
    return document_of(strict_json(data, "the policy"))


def document_of(value: Any) -> PolicyDocument:
    """The document in a JSON value. Raises `ConfigurationError` as `read_document` does."""
    document = typed(value, PolicyDocument, "the policy")
    check_meaning(document)
    return document


def strict_json(data: bytes, what: str) -> Any:
    """A JSON value; `what` says in errors what it was to be. Raises `ConfigurationError`."""
    try:
        return parse_json(data)
    except MalformedError as error:
        raise ConfigurationError(f"{what} is not strict UTF-8 JSON ({error})") from None


def typed(value: Any, kind: type[T], what: str) -> T:
    """`value` as `kind`. Raises `ConfigurationError` naming the field, from `what` on."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ConfigurationError(_message(str(error), kind, what)) from None


def _message(text: str, kind: type[Part], what: str) -> str:
    said, _, where = text.rpartition(_AT) if _AT in text else (text, "", "")
    where = where.removesuffix("`")
    path = where.removeprefix(".")
    if unknown := _UNKNOWN.fullmatch(said):
        name = unknown[1]
        return f"{_join(path, _shown(name))}: there is no such field{nearest(name, _fields_at(kind, where))}"
    if missing := _MISSING.fullmatch(said):
        return f"{_join(path, missing[1])}: is missing and must be given"
    said = f"{said[:1].lower()}{said[1:].replace('`', '')}"
    return f"{path or what}: {said if said.isprintable() else ascii(said)}"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _shown(name: str) -> str:
    """A field's name as somebody wrote it: cut, and without what would steer a terminal."""
    return name[:64] if name.isprintable() else ascii(name[:64])


def _fields_at(kind: type[Part], where: str) -> list[str]:
    """The names of fields that may stand at a path like `.grants[3]`."""
    current: Any = msgspec.inspect.type_info(kind)
    for step in _STEP.finditer(where):
        current = _struct_or_list(current)
        if step[1] is None:
            current = getattr(current, "item_type", None)
        else:
            fields = getattr(current, "fields", ())
            current = next((field.type for field in fields if field.encode_name == step[1]), None)
    return [field.encode_name for field in getattr(_struct_or_list(current), "fields", ())]


def _struct_or_list(info: Any) -> Any:
    """Of an optional type, the part that is not null."""
    if isinstance(info, msgspec.inspect.UnionType):
        kinds = (msgspec.inspect.StructType, msgspec.inspect.VarTupleType)
        return next((one for one in info.types if isinstance(one, kinds)), None)
    return info
