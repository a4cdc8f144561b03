"""The clocks of this machine."""

import time

_FRESHNESS = getattr(time, "CLOCK_BOOTTIME", None)


class SystemClock:
    """`Clock` over the operating system. Both ends of a call read the same clocks: they share the machine."""

    def boottime_ms(self) -> int:
        """CLOCK_BOOTTIME on Linux, the system-wide monotonic clock elsewhere: neither can be set."""
        if _FRESHNESS is None:
            return time.monotonic_ns() // 1_000_000
        return time.clock_gettime_ns(_FRESHNESS) // 1_000_000

    def wall_ms(self) -> int:
        """Since the Unix epoch; may step."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """For rates; stands still while the machine sleeps on some systems, which only lengthens a wait."""
        return time.monotonic_ns() // 1_000_000
