import asyncio
import logging
import ssl as tls
from collections import deque
from types import TracebackType
from typing import Any, Callable, Deque, Dict, Optional, Sequence, Type

from ._address import Token, base_of
from ._clock import ServiceClock
from ._connection import StreamConnection, StreamState
from ._errors import GantryClientError, option_error
from ._messages import StreamMessage

_LOG = logging.getLogger("gantry_client")
_MOST_PICTURES = 32
"""Pictures that wait for a reader. They are large, and a live view wants the newest."""


def connect(
    url: str,
    *,
    token: Token = None,
    cameras: Optional[Sequence[str]] = None,
    labels: Optional[Sequence[str]] = None,
    min_score: Optional[float] = None,
    detections: Optional[bool] = None,
    frames: Optional[bool] = None,
    frame_cameras: Optional[Sequence[str]] = None,
    resume_after: Optional[str] = None,
    max_waiting: int = 1_000,
    ssl: Optional[tls.SSLContext] = None,
    on_state: Optional[Callable[[StreamState], None]] = None,
) -> "GantryStream":
    """The live stream of a service, to be opened by `async with` and read by `async for`.

    url: of the service, such as `http://127.0.0.1:8000`; with the path under which a reverse proxy has it, if any.
    token: of `server.token`; a function is asked anew for every connection.
    cameras, labels, min_score, frames: what to subscribe to; left out: every camera, label and score, and no pictures.
    frame_cameras: with `frames` the cameras whose pictures come; left out: all of `cameras`.
    resume_after: begins after the message with this cursor, that of `GantryStream.cursor` before a restart of this program.
    max_waiting: results that wait for `async for` at most; then the stream pauses until half of them are read, and goes on where
        it was. What the service does not keep so long is told by a `gap`.
    ssl: for a service with `server.tls` whose issuer this computer does not know.
    on_state: is called with each change of the connection. Trouble is also logged, once until it is over.

    Raises GantryClientError for an option that is wrong.
    """
    if max_waiting < 2:
        raise option_error("max_waiting: it is less than 2", "Leave it out for 1,000.")
    wants = _wants(cameras, labels, min_score, detections, frames, frame_cameras)
    return GantryStream(base_of(url), token, ssl, wants, resume_after, max_waiting, on_state)


class GantryStream:
    """Live results: `async for message in stream`. It ends by `close`, or by an error that will not pass."""

    def __init__(
        self,
        base: str,
        token: Token,
        ssl: Optional[tls.SSLContext],
        wants: Dict[str, Any],
        resume_after: Optional[str],
        max_waiting: int,
        on_state: Optional[Callable[[StreamState], None]],
    ) -> None:
        self.cursor = resume_after
        """Of the last result that was handled: what a program keeps to go on there after a restart of its own."""
        self.pictures_left_out = 0
        """Pictures that were left out since this reader was behind."""
        self._waiting: Deque[StreamMessage] = deque()
        self._pictures = 0
        self._max_waiting = max_waiting
        self._on_state = on_state
        self._news: Optional[asyncio.Event] = None
        self._task: Optional["asyncio.Task[None]"] = None
        self._given: Optional[StreamMessage] = None
        self._told = False
        self._closed = False
        self._connection: Optional[StreamConnection] = None
        self._settings = (base, token, ssl, wants)

    @property
    def state(self) -> StreamState:
        if self._connection is None:
            return StreamState("closed" if self._closed else "connecting")
        return self._connection.state

    @property
    def clock(self) -> ServiceClock:
        """Wall time of the service, whatever this computer's clock says."""
        self._start()
        assert self._connection is not None
        return self._connection.clock

    async def subscribe(
        self,
        *,
        cameras: Optional[Sequence[str]] = None,
        labels: Optional[Sequence[str]] = None,
        min_score: Optional[float] = None,
        detections: Optional[bool] = None,
        frames: Optional[bool] = None,
        frame_cameras: Optional[Sequence[str]] = None,
    ) -> None:
        """Asks for something else from now on."""
        self._start()
        assert self._connection is not None
        await self._connection.subscribe(_wants(cameras, labels, min_score, detections, frames, frame_cameras))

    async def close(self) -> None:
        """Ends at once; what waits is not read any more. The service is told, for half a second at most."""
        self._closed = True
        if self._news is not None:
            self._news.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def __aenter__(self) -> "GantryStream":
        self._start()
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.close()

    def __aiter__(self) -> "GantryStream":
        self._start()
        return self

    async def __anext__(self) -> StreamMessage:
        self._start()
        assert self._task is not None and self._news is not None and self._connection is not None
        if self._given is not None and self._given["type"] == "detections":
            self.cursor = self._given["cursor"]
        self._given = None
        while not self._closed:
            if self._waiting:
                self._given = self._next()
                return self._given
            if self._task.done():
                self._task.result()  # Raises what ended it.
            self._news.clear()
            await self._news.wait()
        raise StopAsyncIteration

    def _start(self) -> None:
        # Not before: there is no event loop where a stream is made outside of one.
        if self._task is not None or self._closed:
            return
        base, token, ssl, wants = self._settings
        self._news = asyncio.Event()
        self._connection = StreamConnection(
            base,
            token=token,
            ssl=ssl,
            wants=wants,
            resume_after=self.cursor,
            take=self._take,
            tell=self._became,
        )
        self._task = asyncio.ensure_future(self._connection.run())
        self._task.add_done_callback(self._ended)

    def _take(self, message: StreamMessage) -> None:
        assert self._news is not None and self._connection is not None
        self._waiting.append(message)
        if message["type"] == "picture":
            self._pictures += 1
            if self._pictures > _MOST_PICTURES:
                oldest = next(i for i, waits in enumerate(self._waiting) if waits["type"] == "picture")
                del self._waiting[oldest]
                self._pictures -= 1
                self.pictures_left_out += 1
        elif len(self._waiting) - self._pictures >= self._max_waiting:
            self._connection.pause()
        self._news.set()

    def _next(self) -> StreamMessage:
        assert self._connection is not None
        message = self._waiting.popleft()
        if message["type"] == "picture":
            self._pictures -= 1
        if len(self._waiting) - self._pictures <= self._max_waiting / 2:
            self._connection.resume()
        return message

    def _became(self, state: StreamState) -> None:
        if state.trouble is None:
            self._told = False
        elif state.state == "waiting" and not self._told:
            self._told = True
            why = "nothing comes any more" if state.error is None else f"{state.error.message}. {state.error.hint}"
            _LOG.warning("%s Trying again.", why if why.endswith(".") else f"{why}.")
        if self._on_state is not None:
            self._on_state(state)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        assert self._news is not None and self._connection is not None
        error = None if task.cancelled() else task.exception()
        refused = error if isinstance(error, GantryClientError) else None
        self._connection.become(StreamState("closed", None if error is None else "broken", refused))
        self._news.set()


def _wants(
    cameras: Optional[Sequence[str]],
    labels: Optional[Sequence[str]],
    min_score: Optional[float],
    detections: Optional[bool],
    frames: Optional[bool],
    frame_cameras: Optional[Sequence[str]],
) -> Dict[str, Any]:
    for name, value in (("cameras", cameras), ("labels", labels), ("frame_cameras", frame_cameras)):
        # A text is a sequence of texts, too.
        if isinstance(value, str):
            raise option_error(f"{name}: a text is given", f'Give a list: {name}=["{value}"].')
    wants = {
        "cameras": None if cameras is None else list(cameras),
        "labels": None if labels is None else list(labels),
        "minScore": min_score,
        "detections": detections,
        "frames": frames,
        "frameCameras": None if frame_cameras is None else list(frame_cameras),
    }
    return {name: value for name, value in wants.items() if value is not None}
