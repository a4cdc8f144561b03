"""The addresses in a call."""

from collections.abc import Iterator

import msgspec


def urls_among(arguments: msgspec.Struct) -> Iterator[str]:
    """Every `url` among the arguments, at any depth: a bookmark's is followed by a person one day."""
    for name in arguments.__struct_fields__:
        value = getattr(arguments, name)
        if isinstance(value, msgspec.Struct):
            yield from urls_among(value)
        elif name == "url" and isinstance(value, str):
            yield value
