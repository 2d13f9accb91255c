from typing import Callable, Optional, Union
from urllib.parse import urlsplit, urlunsplit

from ._errors import option_error

Token = Union[str, Callable[[], Optional[str]], None]

_STREAM = "api/v1/stream"


def base_of(url: str) -> str:
    """URL of the service with `http` and `/` at its end."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise option_error(f'url: "{url}" is no URL: {error}', "Such as http://127.0.0.1:8000.") from error
    scheme = {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme)
    if scheme not in ("http", "https") or not parts.hostname:
        raise option_error(
            f'url: "{url}" is no URL of http or https',
            "Give the address of the service, such as http://127.0.0.1:8000.",
        )
    if parts.username is not None or parts.password is not None:
        raise option_error("url: it has a login", "Leave it out, and give the token of the service as token.")
    path = parts.path[: -len(_STREAM)] if parts.path.endswith(f"/{_STREAM}") else parts.path
    return urlunsplit((scheme, parts.netloc, path if path.endswith("/") else f"{path}/", "", ""))


def stream_url(base: str) -> str:
    return "ws" + base[len("http") :] + _STREAM


def token_of(token: Token) -> Optional[str]:
    return (token() if callable(token) else token) or None
