"""Sets of CDP targets that the agent must never see."""

from collections.abc import Iterable


class TargetSet:
    """The ids that a host named."""

    __slots__ = ("_ids",)

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._ids = frozenset(ids)

    def __contains__(self, target_id: object, /) -> bool:
        return target_id in self._ids

    def __repr__(self) -> str:
        return f"TargetSet({len(self._ids)} ids)"


class AllTargets:
    """Every target: the host that knows which are private did not answer."""

    __slots__ = ()

    def __contains__(self, target_id: object, /) -> bool:
        return True

    def __repr__(self) -> str:
        return "AllTargets()"
