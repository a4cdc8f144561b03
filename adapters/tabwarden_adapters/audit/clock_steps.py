"""Finds where wall time was set: it moved otherwise than the clock that never steps."""

from dataclasses import dataclass, field

from tabwarden_adapters.audit.chain import Link
from tabwarden_adapters.audit.records import written_ms

STEP_MS = 1_000  # clocks are slewed by less between two records, and two readings are not made at once
MOST = 100  # found in one log; later ones are not listed


@dataclass(frozen=True, slots=True)
class ClockStep:
    """Before this record wall time was moved by so many milliseconds: negative when it went back."""

    sequence: int
    by_ms: int


@dataclass(slots=True)
class StepFinder:
    """Give it every record in order."""

    found: list[ClockStep] = field(default_factory=list)
    _before: tuple[int, int] | None = None

    def record(self, link: Link) -> None:
        """Records without both times are passed over. A start, or an earlier time of the clock that never
        steps, means another run of the machine: wall time is taken as it is then."""
        wall, boot = written_ms(link.members), link.members.get("boot_ms")
        if wall is None or not isinstance(boot, int):
            return
        life = link.members.get("lifecycle")
        started = isinstance(life, dict) and life.get("event") == "started"
        if self._before is not None and boot >= self._before[1] and not started:
            by = (wall - self._before[0]) - (boot - self._before[1])
            if abs(by) > STEP_MS and len(self.found) < MOST:
                self.found.append(ClockStep(link.sequence, by))
        self._before = wall, boot
