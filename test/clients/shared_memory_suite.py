"""Passes tensors in shared memory to a running server with tritonclient, unmodified.

Usage: shared_memory_suite.py http|grpc HOST:PORT

Prints a JSON object: name of each check -> "ok", or what went wrong.
"""

import asyncio
import os
import sys
import uuid
from contextlib import contextmanager

import numpy as np
import tritonclient.utils.shared_memory as shm
from outcomes import tell
from tritonclient.utils import InferenceServerException, np_to_triton_dtype, serialize_byte_tensor

kind, address = sys.argv[1], sys.argv[2]
over_http = kind == "http"
if over_http:
    import tritonclient.http as api
    import tritonclient.http.aio as aio
else:
    import tritonclient.grpc as api
    import tritonclient.grpc.aio as aio

client = api.InferenceServerClient(address)


@contextmanager
def region(name, byte_size, registered=None):
    """Memory of this process, registered by its name; as much as is there unless said otherwise."""
    key = f"/gantry-test-{uuid.uuid4()}"
    handle = shm.create_shared_memory_region(name, key, byte_size)
    try:
        client.register_system_shared_memory(name, key, byte_size if registered is None else registered)
        yield handle, key
    finally:
        client.unregister_system_shared_memory(name)
        shm.destroy_shared_memory_region(handle)


def refused(call, part):
    try:
        call()
    except InferenceServerException as error:
        assert part in error.message(), error.message()
        return
    raise AssertionError("was not refused")


def shared_input(name, shape, datatype, region_name, byte_size, offset=0):
    made = api.InferInput(name, shape, datatype)
    made.set_shared_memory(region_name, byte_size, offset=offset)
    return made


def shared_output(name, region_name, byte_size, offset=0):
    made = api.InferRequestedOutput(name)
    made.set_shared_memory(region_name, byte_size, offset=offset)
    return made


def metadata():
    server = client.get_server_metadata() if over_http else client.get_server_metadata(as_json=True)
    # What the settings of this service say.
    assert server["name"] == "triton", server
    assert "system_shared_memory" in server["extensions"], server
    assert "cuda_shared_memory" not in server["extensions"], server


def sum_and_difference():
    # Clients make sure that nothing is left of those before them.
    client.unregister_system_shared_memory()
    client.unregister_cuda_shared_memory()
    a, b = np.arange(16, dtype=np.float32).reshape(1, 16), np.ones((1, 16), dtype=np.float32)
    with region("in", 128) as (given, _), region("out", 128) as (got, _):
        shm.set_shared_memory_region(given, [a, b])
        inputs = [shared_input(f"INPUT{at}", [1, 16], "FP32", "in", 64, 64 * at) for at in range(2)]
        outputs = [shared_output(f"OUTPUT{at}", "out", 64, 64 * at) for at in range(2)]
        result = client.infer("add_sub", inputs, outputs=outputs)
        for at, expected in enumerate((a + b, a - b)):
            output = result.get_output(f"OUTPUT{at}")
            shape = output["shape"] if over_http else output.shape
            np.testing.assert_array_equal(shm.get_contents_as_numpy(got, np.float32, shape, 64 * at), expected)
        status = client.get_system_shared_memory_status() if over_http else client.get_system_shared_memory_status(as_json=True)
        names = [each["name"] for each in status] if over_http else list(status["regions"])
        assert sorted(names) == ["in", "out"], status


def mixed_and_reused():
    a, b = np.full((1, 16), 5, dtype=np.float32), np.full((1, 16), 3, dtype=np.float32)
    with region("in", 64) as (given, _), region("out", 64) as (got, _):
        shm.set_shared_memory_region(given, [a])
        sent = api.InferInput("INPUT1", [1, 16], "FP32")
        sent.set_data_from_numpy(b)
        first = shared_input("INPUT0", [1, 16], "FP32", "in", 64)
        outputs = [shared_output("OUTPUT1", "out", 64), api.InferRequestedOutput("OUTPUT0")]
        result = client.infer("add_sub", [first, sent], outputs=outputs)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + b)
        np.testing.assert_array_equal(shm.get_contents_as_numpy(got, np.float32, [1, 16]), a - b)
        # The same objects, the other way round.
        first.set_data_from_numpy(b)
        sent.set_shared_memory("in", 64)
        outputs[0].unset_shared_memory()
        result = client.infer("add_sub", [first, sent], outputs=outputs)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + b)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), b - a)


def datatypes():
    for name in ("float32", "int64", "uint8", "bool", "float16"):
        value = np.array([[0, 1, 1]], dtype=name)
        with region("in", value.nbytes) as (given, _), region("out", value.nbytes) as (got, _):
            shm.set_shared_memory_region(given, [value])
            inputs = [shared_input("in0", [1, 3], np_to_triton_dtype(value.dtype), "in", value.nbytes)]
            client.infer(f"echo_{name}", inputs, outputs=[shared_output("out0", "out", value.nbytes)])
            np.testing.assert_array_equal(shm.get_contents_as_numpy(got, value.dtype, [1, 3]), value)


def strings():
    texts = np.array([["", "ä", "three words here"]], dtype=object)
    packed = serialize_byte_tensor(np.array([[text.encode() for text in texts[0]]], dtype=object))
    size = len(packed.item())
    with region("in", size) as (given, _), region("out", size + 100) as (got, _):
        shm.set_shared_memory_region(given, [packed])
        inputs = [shared_input("in0", [1, 3], "BYTES", "in", size)]
        client.infer("echo_string", inputs, outputs=[shared_output("out0", "out", size + 100)])
        said = shm.get_contents_as_numpy(got, np.object_, [1, 3])
        assert [text.decode() for text in said[0]] == list(texts[0]), said


def large():
    pictures = np.random.default_rng(1).integers(0, 256, (4, 640, 640, 3), dtype=np.uint8)
    with region("in", pictures.nbytes) as (given, _), region("out", pictures.nbytes) as (got, _):
        shm.set_shared_memory_region(given, [pictures])
        inputs = [shared_input("in0", list(pictures.shape), "UINT8", "in", pictures.nbytes)]
        client.infer("echo_picture", inputs, outputs=[shared_output("out0", "out", pictures.nbytes)])
        np.testing.assert_array_equal(shm.get_contents_as_numpy(got, np.uint8, pictures.shape), pictures)


def errors():
    refused(lambda: client.register_system_shared_memory("x", "/gantry-test-nothing", 64), "Unable to open shared memory region: '/gantry-test-nothing'")
    refused(lambda: client.register_system_shared_memory("x", "/../etc/passwd", 64), "cannot register shared memory region 'x' - invalid shm key")
    with region("in", 64) as (_, key):
        refused(lambda: client.register_system_shared_memory("in", key, 64), "already in manager")
        refused(lambda: client.register_system_shared_memory("x", key, 65), "failed to register shared memory region 'x': invalid args")
        for byte_size, offset, part in ((64, 64, "Invalid offset for"), (65, 0, "Invalid offset + byte size"), (12, 0, None)):
            inputs = [shared_input("in0", [1, 3], "FP32", "in", byte_size, offset)]
            if part is None:
                client.infer("echo_float32", inputs)
            else:
                refused(lambda: client.infer("echo_float32", inputs), part)
        inputs = [shared_input("in0", [1, 3], "FP32", "in", 12)]
        refused(lambda: client.infer("echo_float32", inputs, outputs=[shared_output("out0", "in", 8)]), "(8 bytes) should be at least 12 bytes to hold the results")
    refused(lambda: client.infer("echo_float32", inputs), "Unable to find shared memory region: 'in'")


def cut_short():
    size = 3 * 640 * 640
    with region("in", size) as (_, key):
        inputs = [shared_input("in0", [1, 640, 640, 3], "UINT8", "in", size)]
        client.infer("echo_picture", inputs)
        os.truncate(f"/dev/shm{key}", 100)
        refused(lambda: client.infer("echo_picture", inputs), "has become smaller than it was registered")
        refused(lambda: client.infer("echo_picture", inputs, outputs=[shared_output("out0", "in", size)]), "has become smaller")
        assert os.path.getsize(f"/dev/shm{key}") == 100
        assert client.is_server_live()
        os.truncate(f"/dev/shm{key}", size)
        client.infer("echo_picture", inputs)


def cuda():
    client.unregister_cuda_shared_memory("x")
    status = client.get_cuda_shared_memory_status() if over_http else client.get_cuda_shared_memory_status(as_json=True)
    assert not (status if over_http else status.get("regions")), status
    refused(lambda: client.register_cuda_shared_memory("x", b"AAAA", 0, 64), "failed to register CUDA shared memory region: 'x'")


def asynchronous():
    async def exchange():
        value = np.array([[1, 2, 3]], dtype=np.float32)
        key = f"/gantry-test-{uuid.uuid4()}"
        handle = shm.create_shared_memory_region("aio", key, 24)
        other = aio.InferenceServerClient(address)
        try:
            shm.set_shared_memory_region(handle, [value])
            await other.register_system_shared_memory("aio", key, 24)
            inputs = [shared_input("in0", [1, 3], "FP32", "aio", 12)]
            await other.infer("echo_float32", inputs, outputs=[shared_output("out0", "aio", 12, 12)])
            np.testing.assert_array_equal(shm.get_contents_as_numpy(handle, np.float32, [1, 3], 12), value)
            await other.unregister_system_shared_memory("aio")
        finally:
            await other.close()
            shm.destroy_shared_memory_region(handle)

    asyncio.run(exchange())


tell([metadata, sum_and_difference, mixed_and_reused, datatypes, strings, large, errors, cut_short, cuda, asynchronous])
