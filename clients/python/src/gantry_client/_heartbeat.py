import math
from typing import Literal

_ASK_EVERY_S = 3
_QUIET_AFTER_S = 2
"""An answer that is longer on its way is spoken of."""
_FIRST_PATIENCE_S, _MOST_PATIENCE_S = 5, 20
"""Longest from question to answer; after that the line is dead. Grows for lines that are only slow."""
_HEALTHY_AFTER_S = 60
_SLEPT_S = 4
"""Ticks come once a second: after such a pause the program was busy, and what came meanwhile is still on its way to it."""

Verdict = Literal["fine", "ask", "quiet", "dead"]


class Heartbeat:
    """Tells a quiet line from a dead one: it asks, and anything that comes is an answer.

    A line that dies is found within 9 s. Reads no clock: times are passed in, monotonic, in seconds.
    """

    def __init__(self) -> None:
        self._born_s = 0.0
        self._last_tick_s = 0.0
        self._last_ask_s = 0.0
        self._unanswered = False
        self._patience_s = _FIRST_PATIENCE_S

    def begin(self, at_s: float) -> None:
        """A new line, which has just said its first word."""
        self._born_s = self._last_tick_s = at_s
        self._last_ask_s = -math.inf
        self._unanswered = False

    def heard(self, at_s: float) -> None:
        self._unanswered = False
        if at_s - self._born_s >= _HEALTHY_AFTER_S:
            self._patience_s = _FIRST_PATIENCE_S

    def tick(self, at_s: float) -> Verdict:
        """Once a second while the line is open."""
        slept = at_s - self._last_tick_s >= _SLEPT_S
        self._last_tick_s = at_s
        waited_s = at_s - self._last_ask_s
        if slept or not self._unanswered:
            return self.ask(at_s) if slept or waited_s >= _ASK_EVERY_S else "fine"
        if waited_s >= self._patience_s:
            self._patience_s = min(_MOST_PATIENCE_S, self._patience_s * 2)
            return "dead"
        return "quiet" if waited_s >= _QUIET_AFTER_S else "fine"

    def ask(self, at_s: float) -> Verdict:
        self._last_ask_s = at_s
        self._unanswered = True
        return "ask"
