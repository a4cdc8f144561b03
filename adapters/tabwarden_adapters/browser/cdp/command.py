"""What the generated bindings are made of: commands with a typed result, records, and events."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

import msgspec

T = TypeVar("T")


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A CDP object. Fields that Chromium may leave out are None; unknown fields are ignored."""


class Event(Record, frozen=True, kw_only=True):
    """One CDP event. `METHOD` is its wire name."""

    METHOD: ClassVar[str]

    @classmethod
    def from_json(cls, params: object) -> Self:
        """Build the event from its decoded `params`. Raises `msgspec.ValidationError`."""
        return msgspec.convert(params, cls)


@dataclass(frozen=True, slots=True)
class Command(Generic[T]):
    """One CDP call: its wire name, its parameters (None means left out) and the type of its result.

    The parameters may hold page text or what an agent types, so they are not printed.
    """

    method: str
    params: dict[str, Any] = field(repr=False)
    result: type[T] | None

    def to_json(self) -> dict[str, Any]:
        """The parameters as JSON values."""
        return {name: msgspec.to_builtins(value) for name, value in self.params.items() if value is not None}

    def parse(self, result: object) -> T:
        """Check the decoded result. Raises `msgspec.ValidationError`."""
        if self.result is None:
            return cast(T, None)
        return msgspec.convert(result, self.result)
