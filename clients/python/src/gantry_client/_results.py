import asyncio
import json
import ssl as tls
from datetime import datetime, timezone
from typing import Any, AsyncIterator, Callable, Dict, List, Optional, Union, cast
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import HTTPSHandler, Request, build_opener

from ._address import Token, base_of, token_of
from ._errors import refusal, unreachable
from ._messages import Result

_ANSWERS_WITHIN_S = 30


class GantryApi:
    """What is asked by HTTP beside the live stream. Every method raises GantryClientError."""

    def __init__(self, url: str, *, token: Token = None, ssl: Optional[tls.SSLContext] = None) -> None:
        self._base = base_of(url)
        self._token = token
        self._opener = build_opener(HTTPSHandler(context=ssl))

    async def cameras(self) -> List[Dict[str, Any]]:
        """Cameras as the service tells of them (`/openapi.json`)."""
        return cast(List[Dict[str, Any]], (await self._get("api/v1/cameras"))["items"])

    async def latest(self, camera_id: str) -> Result:
        """The last result of a camera."""
        return cast(Result, await self._get(f"api/v1/cameras/{quote(camera_id, safe='')}/latest"))

    async def results(
        self,
        *,
        camera: Optional[str] = None,
        label: Optional[str] = None,
        since: Union[datetime, str, None] = None,
        until: Union[datetime, str, None] = None,
        page_size: Optional[int] = None,
        on_incomplete: Optional[Callable[[List[str]], None]] = None,
    ) -> AsyncIterator[Result]:
        """Results, newest first, as far as the service keeps them. The next page is asked for when it is read.

        ``on_incomplete`` is called where nodes of a cluster are missing in what follows, each with the reason: they may
        have results of that time, too.
        """
        asked: Dict[str, Optional[str]] = {
            "camera": camera,
            "label": label,
            "from": _time_text(since),
            "to": _time_text(until),
            "limit": None if page_size is None else str(page_size),
        }
        while True:
            query = urlencode({name: value for name, value in asked.items() if value is not None})
            page = await self._get(f"api/v1/detections?{query}")
            if on_incomplete is not None and "incomplete" in page:
                on_incomplete(page["incomplete"])
            for result in page["items"]:
                yield cast(Result, result)
            asked["cursor"] = page.get("nextCursor")
            if asked["cursor"] is None:
                return

    async def _get(self, path: str) -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, self._ask, path)

    def _ask(self, path: str) -> Any:
        request = Request(self._base + path, headers={"accept": "application/json"})
        token = token_of(self._token)
        if token is not None:
            # Not sent along to where an answer redirects.
            request.add_unredirected_header("authorization", f"Bearer {token}")
        try:
            with self._opener.open(request, timeout=_ANSWERS_WITHIN_S) as answer:
                status, retry_after, body = answer.status, None, answer.read()
        except HTTPError as error:
            with error:
                status, retry_after, body = error.code, error.headers.get("retry-after"), error.read()
        except OSError as error:
            raise unreachable(self._base, error) from error
        try:
            if status == 200:
                return json.loads(body)
        except ValueError:
            pass
        raise refusal(self._base, status, retry_after, body)


def _time_text(time: Union[datetime, str, None]) -> Optional[str]:
    if not isinstance(time, datetime):
        return time
    return time.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
