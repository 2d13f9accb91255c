"""Drives a running server with tritonclient, unmodified, by a DNS name that leads to this machine, as the DNS of a cluster would.

Usage: dns_name_suite.py http|http_aio NAME:PORT TOKEN MODEL

MODEL has an input "x" and an output "y" of one MiB of UINT8 each. Prints a JSON object: name of each check -> "ok", or what went wrong.
"""

import asyncio
import inspect
import socket
import sys

import gevent.socket
import numpy as np
from outcomes import tell
from tritonclient.utils import InferenceServerException

kind, address, token, model = sys.argv[1:]
if kind == "http":
    import tritonclient.http as api
else:
    import tritonclient.http.aio as api

for module in (socket, gevent.socket):
    module.getaddrinfo = lambda _, *more, lookup=module.getaddrinfo, **named: lookup("127.0.0.1", *more, **named)

bearer = {"Authorization": f"Bearer {token}"}


def run(check):
    """One client for each check, blocking or not."""

    async def checked():
        client = api.InferenceServerClient(address)

        async def call(method, *args, **kwargs):
            result = getattr(client, method)(*args, **kwargs)
            return await result if inspect.isawaitable(result) else result

        try:
            await check(call)
        finally:
            await call("close")

    def named():
        asyncio.run(checked())

    named.__name__ = check.__name__
    return named


@run
async def health_without_token(call):
    assert await call("is_server_live")
    assert await call("is_server_ready")


@run
async def metadata(call):
    assert (await call("get_server_metadata", headers=bearer))["name"]
    assert await call("is_model_ready", model, headers=bearer)


@run
async def inference(call):
    values = np.arange(1024 * 1024, dtype=np.uint32).astype(np.uint8)
    x = api.InferInput("x", values.shape, "UINT8")
    x.set_data_from_numpy(values)
    result = await call("infer", model, [x], headers=bearer)
    assert np.array_equal(result.as_numpy("y"), values)


@run
async def no_more_without_token(call):
    try:
        await call("get_server_metadata")
    except InferenceServerException as error:
        assert "token" in str(error), error
    else:
        raise AssertionError("answered")


tell([health_without_token, metadata, inference, no_more_without_token])
