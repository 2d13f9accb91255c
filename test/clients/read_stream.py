"""Reads a stream by the client package: each message and state is a line of JSON. Lines of stdin say what to do."""

import asyncio
import base64
import json
import os
import ssl
import sys
import time

from gantry_client import GantryClientError, StreamState, connect


def say(kind: str, value: object) -> None:
    print(json.dumps({kind: value}), flush=True)


def error_of(error: GantryClientError) -> "dict[str, object]":
    return {"code": error.code, "message": error.message, "hint": error.hint, "status": error.status}


def told(state: StreamState) -> None:
    say("state", {"state": state.state, "trouble": state.trouble, "error": state.error and error_of(state.error)})


async def main() -> None:
    options = json.loads(sys.argv[1])
    ca = options.pop("ca", None)
    if ca is not None:
        options["ssl"] = ssl.create_default_context(cafile=ca)
    stream = connect(**options, on_state=told)
    free = asyncio.Event()
    free.set()

    async def obey() -> None:
        loop = asyncio.get_running_loop()
        while True:
            line = await loop.run_in_executor(None, sys.stdin.readline)
            order = json.loads(line) if line != "" else {"order": "close"}
            if order["order"] == "hold":
                free.clear()
            elif order["order"] == "go":
                free.set()
            elif order["order"] == "subscribe":
                await stream.subscribe(**order["wants"])
            else:
                free.set()
                return await stream.close()

    obeying = asyncio.ensure_future(obey())
    try:
        async with stream:
            async for message in stream:
                if message["type"] == "picture":
                    jpeg = base64.b64encode(message["jpeg"]).decode()
                    say("message", {"type": "picture", "header": message["header"], "jpeg": jpeg})
                else:
                    say("message", message)
                await free.wait()
        say("ended", {"aheadMs": (stream.clock.now() - time.time()) * 1000})
    except GantryClientError as error:
        say("failed", error_of(error))
    obeying.cancel()
    # The thread that waits for stdin would be waited for.
    sys.stdout.flush()
    os._exit(0)


asyncio.run(main())
