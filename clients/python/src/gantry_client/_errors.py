import json
from typing import Optional


class GantryClientError(Exception):
    """What went wrong, with what to do about it.

    `code` is one of the service (docs/errors.md), or of this package: `GANTRY_CLIENT_OPTION` (an option is wrong),
    `GANTRY_CLIENT_UNREACHABLE` (nobody answers), `GANTRY_CLIENT_ADDRESS` (somebody answers who is no Gantry),
    `GANTRY_CLIENT_CLOSED` (the service closed the connection and said why).
    `retryable`: it may go away by itself, so that a stream tries again.
    """

    def __init__(
        self,
        code: str,
        message: str,
        hint: str,
        *,
        status: Optional[int] = None,
        retryable: bool = False,
        retry_after_s: float = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.status = status
        self.retryable = retryable
        self.retry_after_s = retry_after_s


def option_error(message: str, hint: str) -> GantryClientError:
    return GantryClientError("GANTRY_CLIENT_OPTION", message, hint)


def unreachable(url: str, cause: BaseException) -> GantryClientError:
    why = str(cause) or type(cause).__name__
    return GantryClientError(
        "GANTRY_CLIENT_UNREACHABLE",
        f"{url} does not answer: {why}",
        "Check that the service runs and that the address is right.",
        retryable=True,
    )


def refusal(url: str, status: int, retry_after: Optional[str], body: bytes) -> GantryClientError:
    """What an answer means that is not the one asked for: what the service says, or that somebody else answers."""
    # Those may be another one soon, though nobody changes anything here.
    retryable = status >= 500 or status in (408, 425, 429)
    retry_after_s = float(retry_after) if retry_after is not None and retry_after.isdecimal() else 0.0
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    if isinstance(problem, dict) and isinstance(problem.get("code"), str):
        code, message, hint = problem["code"], str(problem.get("detail", "")), str(problem.get("hint", ""))
    else:
        code = "GANTRY_CLIENT_ADDRESS"
        message = f"{url} answers with {status}, and not as Gantry does"
        hint = "Check the address (http or https, port, path), and what is in front of the service."
    return GantryClientError(
        code, message, hint, status=status, retryable=retryable, retry_after_s=retry_after_s
    )
