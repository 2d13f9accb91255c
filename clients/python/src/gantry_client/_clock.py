import time
from typing import Callable, NamedTuple, Optional


class _Reading(NamedTuple):
    """One answer with the service's time, and between which two of ours it must have been said."""

    service_s: float
    mid_s: float
    error_s: float
    drift_s: float


_KEPT_S = 120
"""Clocks run apart: a good reading does not stay one for ever."""
_SLEPT_S = 1
"""Wall and monotonic time of a computer differ by more once it slept, or its clock was set."""


class ServiceClock:
    """The service's wall clock, whatever that of this computer says: every time the service tells is of it.

    It is the time of the quickest answer of the last two minutes; before the first answer that of this computer.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._best: Optional[_Reading] = None

    def now(self) -> float:
        """Wall time of the service, in seconds since 1970."""
        if self._best is None:
            return self._wall()
        return self._best.service_s + self._monotonic() - self._best.mid_s

    def read(self, service_s: float, asked_s: float) -> None:
        """Learns from an answer that said `service_s`; the question was sent at `asked_s` of the monotonic clock."""
        now_s = self._monotonic()
        reading = _Reading(service_s, (asked_s + now_s) / 2, (now_s - asked_s) / 2, self._wall() - now_s)
        if self._best is None or _is_better(reading, self._best):
            self._best = reading


def _is_better(reading: _Reading, best: _Reading) -> bool:
    apart_s = abs(reading.service_s - best.service_s - (reading.mid_s - best.mid_s))
    return (
        reading.error_s <= best.error_s
        or reading.mid_s - best.mid_s > _KEPT_S
        # Both cannot be right: the clock of the service was set, or monotonic time stood still.
        or apart_s > reading.error_s + best.error_s + 0.001
        or abs(reading.drift_s - best.drift_s) > _SLEPT_S
    )
