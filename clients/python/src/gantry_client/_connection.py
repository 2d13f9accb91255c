import asyncio
import json
import random
import ssl as tls
import struct
import time
from collections import deque
from datetime import datetime
from typing import Any, Callable, Deque, Dict, Literal, NamedTuple, Optional, Tuple, Union, cast

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.typing import Subprotocol

from ._address import Token, stream_url, token_of
from ._clock import ServiceClock
from ._errors import GantryClientError, refusal, unreachable
from ._heartbeat import Heartbeat
from ._messages import DetectionsMessage, GapMessage, PictureMessage, StreamMessage

_FIRST_RETRY_S, _LONGEST_RETRY_S = 0.5, 10.0
_OPEN_WITHIN_S = 8
_TICK_S = 1
_STEADY_S = 5
"""A line that lived so long is no reason to wait longer for the next one."""
_ASK_AGAIN_S = 2
"""The service bounds how often a client may ask for something else."""
_CLOSE_WITHIN_S = 0.5
_FINAL_CODES = (1008, 1009)
"""Close codes with which another try would end alike: the service wants no more of what this client sends."""

Trouble = Literal["silent", "broken"]


class StreamState(NamedTuple):
    """How a stream stands."""

    state: Literal["connecting", "open", "waiting", "paused", "closed"]
    """`waiting`: for the next try. `paused`: for whoever reads. `closed`: for good, with `error` where it was not meant."""
    trouble: Optional[Trouble] = None
    """`silent`: nothing came although the client asked; `broken`: closed by the far side, or never opened."""
    error: Optional[GantryClientError] = None
    """With trouble: what is known of why."""
    retry_in_s: Optional[float] = None


class _Silent(Exception):
    """Nothing came although this client asked."""


class _Connect(connect):
    def process_redirect(self, exc: Exception) -> Union[Exception, str]:
        """The token is for the address that was given, and for no other."""
        return exc


class StreamConnection:
    """A WebSocket of `gantry.v1` that comes back by itself, with full-jitter waits, and says again what it wants.

    It resumes after the last message that it handed on: none twice, and none left out without a `gap`. A line that is lost
    without a word (sleep, another network, a forgetful NAT) is found by pings of its own.
    """

    def __init__(
        self,
        base: str,
        *,
        token: Token,
        ssl: Optional[tls.SSLContext],
        wants: Dict[str, Any],
        resume_after: Optional[str],
        take: Callable[[StreamMessage], None],
        tell: Callable[[StreamState], None],
    ) -> None:
        self.state = StreamState("connecting")
        self.clock = ServiceClock()
        self._base = base
        self._token = token
        self._ssl = ssl
        self._wants = wants
        self._take = take
        self._tell = tell
        self._heartbeat = Heartbeat()
        self._failures = 0
        self._was_ever_open = False
        self._opened_s = 0.0
        self._cursor = resume_after
        self._room = asyncio.Event()
        self._room.set()
        self._socket: Optional[ClientConnection] = None
        # What was asked and has no answer yet: each has one, and they come in order. Of pings when they were sent.
        self._asked: Deque[Union[Literal["subscribe"], float]] = deque()
        # A service of before pings calls them a mistake.
        self._pings = True

    def pause(self) -> None:
        """Lets go of the line until `resume`, which gets what comes meanwhile: for a reader that is behind."""
        self._room.clear()

    def resume(self) -> None:
        self._room.set()

    async def subscribe(self, wants: Dict[str, Any]) -> None:
        """Asks for something else from now on."""
        self._wants = wants
        if self._socket is not None and self.state.state == "open":
            try:
                await self._say(self._socket)
            except ConnectionClosed:
                pass  # It is said when the line is back.

    async def run(self) -> None:
        """Until it is cancelled. Raises GantryClientError for what will not pass."""
        while True:
            if not self._room.is_set():
                self.become(StreamState("paused"))
                await self._room.wait()
            self.become(self.state._replace(state="connecting", retry_in_s=None))
            trouble, error = await self._live()
            if trouble is None:
                continue
            if error is not None and self._is_final(error):
                raise error
            bound_s = min(_LONGEST_RETRY_S, _FIRST_RETRY_S * 2**self._failures)
            # A line that fell silent has been waited for long enough.
            jitter_s = 0.0 if trouble == "silent" else max(bound_s / 4, random.random() * bound_s)
            wait_s = max(jitter_s, 0.0 if error is None else error.retry_after_s)
            self._failures = min(self._failures + 1, 16)
            self.become(StreamState("waiting", trouble, error, wait_s))
            await asyncio.sleep(wait_s)

    def _is_final(self, error: GantryClientError) -> bool:
        # What was open once has the right address: what answers otherwise in its place goes away. A token may be taken back.
        if error.retryable:
            return False
        return self.state.state == "open" or not self._was_ever_open or error.status == 401

    async def _live(self) -> Tuple[Optional[Trouble], Optional[GantryClientError]]:
        """One connection, from its opening to its end. Returns what was amiss with it; nothing for a reader that is behind."""
        token = token_of(self._token)
        options: Dict[str, Any] = {} if self._ssl is None else {"ssl": self._ssl}
        try:
            socket = await _Connect(
                stream_url(self._base),
                subprotocols=[Subprotocol("gantry.v1")],
                additional_headers={} if token is None else {"Authorization": f"Bearer {token}"},
                compression=None,
                open_timeout=_OPEN_WITHIN_S,
                close_timeout=_CLOSE_WITHIN_S,
                # Those of the heartbeat go through to the service and back, whatever stands between.
                ping_interval=None,
                max_size=None,
                **options,
            )
        except InvalidStatus as error:
            answer = error.response
            retry_after = answer.headers.get("Retry-After")
            return "broken", refusal(self._base, answer.status_code, retry_after, bytes(answer.body or b""))
        except (OSError, EOFError, asyncio.TimeoutError, InvalidHandshake) as error:
            return "broken", unreachable(self._base, error)
        self._socket = socket
        self._asked.clear()
        reading = asyncio.ensure_future(self._read(socket))
        ticking = asyncio.ensure_future(self._tick(socket))
        try:
            await asyncio.wait([reading, ticking], return_when=asyncio.FIRST_COMPLETED)
            await (reading if reading.done() else ticking)
            return None, None
        except _Silent:
            socket.transport.abort()
            return "silent", None
        except ConnectionClosed as error:
            return "broken", _closed_error(error)
        except asyncio.TimeoutError as error:
            return "broken", unreachable(self._base, error)
        except GantryClientError as error:
            return "broken", error
        finally:
            self._socket = None
            reading.cancel()
            ticking.cancel()
            await asyncio.gather(reading, ticking, return_exceptions=True)
            await socket.close()

    async def _read(self, socket: ClientConnection) -> None:
        opening = True
        while self._room.is_set():
            data = await (asyncio.wait_for(socket.recv(), _OPEN_WITHIN_S) if opening else socket.recv())
            opening = False
            self._heartbeat.heard(time.monotonic())
            if self.state.state == "open" and self.state.trouble is not None:
                self.become(StreamState("open"))
            if isinstance(data, str):
                await self._understand(socket, _parsed(data))
            else:
                picture = parse_picture(data)
                if picture is not None:
                    self._take(picture)

    async def _understand(self, socket: ClientConnection, message: Dict[str, Any]) -> None:
        """Passes over what it does not know: later versions of the service send more."""
        kind = message.get("type")
        if kind == "hello":
            await self._opened(socket, message["cursor"])
        elif kind == "subscribed":
            self._answered()
        elif kind == "pong":
            asked = self._answered()
            if isinstance(asked, float):
                self.clock.read(_seconds_of(message["at"]), asked)
        elif kind == "error":
            await self._refused(socket, message)
        elif kind == "gap":
            self._take(cast(GapMessage, message))
        elif kind == "detections" and _is_after(message["cursor"], self._cursor):
            self._cursor = message["cursor"]
            self._take(cast(DetectionsMessage, message))

    async def _opened(self, socket: ClientConnection, cursor: str) -> None:
        self._was_ever_open = True
        self._opened_s = time.monotonic()
        self._heartbeat.begin(self._opened_s)
        self._pings = True
        self.become(StreamState("open"))
        await self._say(socket)
        self._cursor = self._cursor or cursor
        self._heartbeat.ask(time.monotonic())
        await self._ping(socket)

    async def _tick(self, socket: ClientConnection) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            if self.state.state != "open":
                continue
            now_s = time.monotonic()
            if now_s - self._opened_s >= _STEADY_S:
                self._failures = 0
            verdict = self._heartbeat.tick(now_s) if self._pings else "fine"
            if verdict == "ask":
                await self._ping(socket)
            elif verdict == "dead":
                raise _Silent
            elif verdict == "quiet" and self.state.trouble is None:
                self.become(StreamState("open", "silent"))

    async def _ping(self, socket: ClientConnection) -> None:
        self._asked.append(time.monotonic())
        await socket.send('{"type":"ping"}')

    async def _say(self, socket: ClientConnection) -> None:
        self._asked.append("subscribe")
        # Events are for a version of this package that knows them.
        message = {"type": "subscribe", "events": False, **self._wants}
        if self._cursor is not None:
            message["resumeAfter"] = self._cursor
        await socket.send(json.dumps(message))

    def _answered(self) -> Union[Literal["subscribe"], float, None]:
        return self._asked.popleft() if self._asked else None

    async def _refused(self, socket: ClientConnection, error: Dict[str, Any]) -> None:
        """The service did not take what was asked first of what has no answer yet."""
        if self._answered() != "subscribe":
            self._pings = self._pings and error["code"] != "GANTRY_WS_MESSAGE"
        elif error["code"] == "GANTRY_RATE_LIMITED":
            await asyncio.sleep(_ASK_AGAIN_S)
            await self._say(socket)
        elif error["code"] == "GANTRY_CURSOR" and self._cursor is not None:
            # Of a stream that this service knows nothing of.
            self._cursor = None
            self._take({"type": "gap", "dropped": 0, "reason": "resume_expired"})
            await self._say(socket)
        else:
            raise GantryClientError(error["code"], error["message"], error["hint"])

    def become(self, state: StreamState) -> None:
        self.state = state
        self._tell(state)


def parse_picture(data: bytes) -> Optional[PictureMessage]:
    """Takes a binary message of the stream apart: uint32 big-endian length, JSON, JPEG. None for bytes that are no picture."""
    if len(data) < 4:
        return None
    (json_bytes,) = struct.unpack_from(">I", data)
    header = _parsed(data[4 : 4 + json_bytes]) if len(data) >= 4 + json_bytes else {}
    if header.get("type") != "picture":
        return None
    return cast(PictureMessage, {"type": "picture", "header": header, "jpeg": data[4 + json_bytes :]})


def _parsed(text: Union[str, bytes]) -> Dict[str, Any]:
    try:
        message = json.loads(text)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _seconds_of(time_text: str) -> float:
    # `Z` is not read by `fromisoformat` before Python 3.11.
    return datetime.fromisoformat(time_text.replace("Z", "+00:00")).timestamp()


def _is_after(cursor: str, last: Optional[str]) -> bool:
    """Whether a message lies behind what was handed on. Cursors are `<run>-<position>`; of another run nothing is known."""
    run, _, position = cursor.rpartition("-")
    last_run, _, last_position = (last or "").rpartition("-")
    return run != last_run or int(position) > int(last_position)


def _closed_error(error: ConnectionClosed) -> GantryClientError:
    code, reason = (1006, "") if error.rcvd is None else (error.rcvd.code, error.rcvd.reason)
    said = f"with {code}" if reason == "" else f"with {code}: {reason}"
    hint = "Read faster, or ask for less." if code == 1013 else "The log of the service says more."
    return GantryClientError(
        "GANTRY_CLIENT_CLOSED",
        f"the connection was closed {said}",
        hint,
        retryable=code not in _FINAL_CODES,
    )
