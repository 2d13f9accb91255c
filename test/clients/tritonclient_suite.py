"""Drives a running server with tritonclient, unmodified, over its whole API.

Usage: tritonclient_suite.py http|http_aio|grpc|grpc_aio HOST:PORT

Prints a JSON object: name of each check -> "ok", or what went wrong.
"""

import asyncio
import inspect
import json
import queue
import sys
import time

import numpy as np
from outcomes import tell
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

kind, address = sys.argv[1], sys.argv[2]
over_http = kind.startswith("http")
if kind == "http":
    import tritonclient.http as api
elif kind == "http_aio":
    import tritonclient.http.aio as api
elif kind == "grpc":
    import tritonclient.grpc as api
else:
    import tritonclient.grpc.aio as api

loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)


class Blocking:
    """An asyncio client whose methods wait."""

    def __init__(self, client):
        self.client = client

    def __getattr__(self, name):
        method = getattr(self.client, name)

        def call(*args, **kwargs):
            result = method(*args, **kwargs)
            return loop.run_until_complete(result) if inspect.isawaitable(result) else result

        return call


async def made():
    return api.InferenceServerClient(address)


client = Blocking(loop.run_until_complete(made())) if kind.endswith("aio") else api.InferenceServerClient(address)


def as_json(method, *args, **kwargs):
    """What the server says, as JSON, over either protocol."""
    return method(*args, **kwargs) if over_http else method(*args, as_json=True, **kwargs)


def tensor(name, data, binary=True):
    made = api.InferInput(name, list(data.shape), np_to_triton_dtype(data.dtype))
    if over_http:
        made.set_data_from_numpy(data, binary_data=binary)
    else:
        made.set_data_from_numpy(data)
    return made


def add_sub(batch=1, **kwargs):
    a = np.arange(batch * 16, dtype=np.float32).reshape(batch, 16)
    b = np.ones((batch, 16), dtype=np.float32)
    result = client.infer("add_sub", [tensor("INPUT0", a), tensor("INPUT1", b)], **kwargs)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + b)
    return result, a, b


def refused(call, *parts):
    """The call fails, and the message has these parts."""
    try:
        call()
    except InferenceServerException as error:
        for part in parts:
            assert part in error.message(), f"{part!r} is not in {error.message()!r}"
        return error
    raise AssertionError("was not refused")


def eventually(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, inspect.getsource(condition)


def health():
    assert client.is_server_live() is True
    assert client.is_server_ready() is True
    assert client.is_model_ready("add_sub") is True
    assert client.is_model_ready("add_sub", "1") is True
    # A version that is not there is no error for the clients: it is not ready.
    try:
        assert client.is_model_ready("add_sub", "9") is False
    except InferenceServerException:
        assert not over_http


def metadata():
    server = as_json(client.get_server_metadata)
    assert server["name"] == "gantry", server
    for extension in ("statistics", "model_repository", "binary_tensor_data", "classification", "parameters"):
        assert extension in server["extensions"], server
    assert "system_shared_memory" not in server["extensions"]
    model = as_json(client.get_model_metadata, "add_sub", "1")
    assert model["name"] == "add_sub" and model["versions"] == ["1"], model
    assert model["platform"] == "onnxruntime_onnx", model
    assert [int(size) for size in model["inputs"][0]["shape"]] == [-1, 16], model


def configuration():
    config = as_json(client.get_model_config, "add_sub")
    config = config if over_http else config["config"]
    assert config["name"] == "add_sub" and config["max_batch_size"] == 8, config
    assert [each["name"] for each in config["input"]] == ["INPUT0", "INPUT1"], config
    assert config["input"][0]["data_type"] == "TYPE_FP32", config


def statistics():
    def count():
        stats = as_json(client.get_inference_statistics, "add_sub")["model_stats"][0]
        return int(stats.get("inference_count", 0)), stats

    before, _ = count()
    add_sub(batch=3)
    after, stats = count()
    assert after - before == 3, (before, after)
    for part in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
        assert int(stats["inference_stats"][part]["count"]) > 0, stats
    assert len(as_json(client.get_inference_statistics)["model_stats"]) > 1


def inference():
    result, a, b = add_sub(batch=2, request_id="mine")
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), a - b)
    response = result.get_response() if over_http else result.get_response(as_json=True)
    assert response["id"] == "mine" and response["model_name"] == "add_sub" and response["model_version"] == "1", response
    assert result.as_numpy("NONE") is None


def requested_outputs():
    result, _, _ = add_sub(outputs=[api.InferRequestedOutput("OUTPUT0")])
    assert result.as_numpy("OUTPUT1") is None


def json_data():
    a = np.arange(16, dtype=np.float32).reshape(1, 16)
    inputs = [tensor("INPUT0", a, binary=False), tensor("INPUT1", a)]
    outputs = [api.InferRequestedOutput("OUTPUT0", binary_data=False), api.InferRequestedOutput("OUTPUT1")]
    result = client.infer("add_sub", inputs, outputs=outputs)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + a)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), a - a)


def datatypes():
    for name in ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"):
        data = np.array([[0, 1, 1]]).astype(name)
        result = client.infer(f"echo_{name}", [tensor("in0", data)])
        np.testing.assert_array_equal(result.as_numpy("out0"), data)
        assert result.as_numpy("out0").dtype == data.dtype
    extremes = np.array([[np.iinfo(np.int64).min, 0, np.iinfo(np.int64).max]], dtype=np.int64)
    for binary in (True, False) if over_http else (True,):
        outputs = [api.InferRequestedOutput("out0", binary_data=binary)] if over_http else None
        result = client.infer("echo_int64", [tensor("in0", extremes, binary)], outputs=outputs)
        np.testing.assert_array_equal(result.as_numpy("out0"), extremes)


def strings():
    data = np.array([["Zaun", "", "Größe"]], dtype=np.object_)
    for binary in (True, False) if over_http else (True,):
        outputs = [api.InferRequestedOutput("out0", binary_data=binary)] if over_http else None
        result = client.infer("echo_string", [tensor("in0", data, binary)], outputs=outputs)
        found = [each.decode() if isinstance(each, bytes) else each for each in result.as_numpy("out0").flatten()]
        assert found == list(data.flatten()), found


def classification():
    outputs = [api.InferRequestedOutput("OUTPUT0", class_count=2)]
    a = np.arange(16, dtype=np.float32).reshape(1, 16)
    result = client.infer("add_sub", [tensor("INPUT0", a), tensor("INPUT1", a)], outputs=outputs)
    found = [each.decode() for each in result.as_numpy("OUTPUT0").flatten()]
    assert found == ["30.000000:15:label15", "28.000000:14:label14"], found


def large_tensor():
    picture = np.random.default_rng(1).integers(0, 255, (1, 640, 640, 3), dtype=np.uint8)
    result = client.infer("echo_picture", [tensor("in0", picture)])
    np.testing.assert_array_equal(result.as_numpy("out0"), picture)


def compression():
    names = ("gzip", "deflate")
    for name in names:
        if over_http:
            add_sub(request_compression_algorithm=name, response_compression_algorithm=name)
        else:
            add_sub(compression_algorithm=name)


def asynchronous():
    if kind.endswith("aio"):
        a = np.ones((1, 16), dtype=np.float32)

        async def together():
            inputs = [tensor("INPUT0", a), tensor("INPUT1", a)]
            return await asyncio.gather(*[client.client.infer("add_sub", inputs) for _ in range(20)])

        results = loop.run_until_complete(together())
    elif over_http:
        with api.InferenceServerClient(address, concurrency=4) as several:
            a = np.ones((1, 16), dtype=np.float32)
            inputs = [tensor("INPUT0", a), tensor("INPUT1", a)]
            results = [each.get_result() for each in [several.async_infer("add_sub", inputs) for _ in range(20)]]
    else:
        a = np.ones((1, 16), dtype=np.float32)
        answers = queue.Queue()
        for _ in range(20):
            inputs = [tensor("INPUT0", a), tensor("INPUT1", a)]
            client.async_infer("add_sub", inputs, callback=lambda result, error: answers.put((result, error)))
        results = []
        for _ in range(20):
            result, error = answers.get(timeout=20)
            assert error is None, error
            results.append(result)
    assert len(results) == 20
    for result in results:
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + a)


def schedule_and_parameters():
    add_sub(priority=1, timeout=10_000_000)
    add_sub(parameters={"mine": "text", "number": 5, "yes": True})


def errors():
    a = np.ones((1, 16), dtype=np.float32)
    unknown = refused(lambda: client.infer("nothing", [tensor("INPUT0", a)]), "unknown model: 'nothing' is not found")
    assert unknown.status() == ("400" if over_http else "StatusCode.INVALID_ARGUMENT"), unknown.status()
    missing = refused(lambda: client.infer("add_sub", [tensor("INPUT0", a)], model_version="9"))
    assert missing.status() in ("404", "503", "StatusCode.NOT_FOUND", "StatusCode.UNAVAILABLE"), missing.status()
    refused(lambda: client.infer("add_sub", [tensor("INPUT0", a)]), "expected 2 inputs but got 1 inputs for model 'add_sub'")
    wide = np.ones((1, 17), dtype=np.float32)
    refused(lambda: client.infer("add_sub", [tensor("INPUT0", wide), tensor("INPUT1", wide)]), "unexpected shape for input 'INPUT0'")
    other = np.ones((1, 16), dtype=np.int32)
    refused(lambda: client.infer("add_sub", [tensor("INPUT0", other), tensor("INPUT1", a)]), "INPUT0")
    many = np.ones((9, 16), dtype=np.float32)
    refused(lambda: client.infer("add_sub", [tensor("INPUT0", many), tensor("INPUT1", many)]), "batch-size must be <= 8")
    refused(lambda: client.get_model_metadata("nothing"), "nothing")
    refused(lambda: client.load_model("nothing"), "failed to load 'nothing'")


def repository():
    def states():
        index = client.get_model_repository_index() if over_http else client.get_model_repository_index(as_json=True)["models"]
        return {each["name"]: each.get("state") for each in index}

    assert states()["spare"] == "READY", states()
    client.unload_model("spare")
    assert client.is_model_ready("spare") is False
    eventually(lambda: states()["spare"] == "UNAVAILABLE")
    data = np.ones((1, 3), dtype=np.float32)
    # Known, but no version of it is ready.
    refused(lambda: client.infer("spare", [tensor("in0", data)]), "spare")
    client.load_model("spare")
    client.infer("spare", [tensor("in0", data)])
    client.load_model("spare", config=json.dumps({"max_batch_size": 2, "backend": "onnxruntime"}))
    config = as_json(client.get_model_config, "spare")
    assert (config if over_http else config["config"])["max_batch_size"] == 2, config
    client.load_model("spare")
    onnx = open(sys.argv[3], "rb").read()
    override = json.dumps({"backend": "onnxruntime", "max_batch_size": 0})
    client.load_model("uploaded", config=override, files={"file:1/model.onnx": onnx})
    client.infer("uploaded", [tensor("in0", data)])
    client.unload_model("uploaded", unload_dependents=True)


def settings():
    def value(settings, name):
        found = settings[name] if over_http else settings["settings"][name]["value"]
        return found[0] if isinstance(found, list) else found

    as_json(client.update_trace_settings, model_name="add_sub", settings={"trace_rate": "7", "trace_level": ["TIMESTAMPS"]})
    assert value(as_json(client.get_trace_settings, model_name="add_sub"), "trace_rate") == "7"
    assert value(as_json(client.get_trace_settings), "trace_rate") == "1000"
    as_json(client.update_trace_settings, model_name="add_sub", settings={"trace_rate": None, "trace_level": None})
    assert value(as_json(client.get_trace_settings, model_name="add_sub"), "trace_rate") == "1000"
    refused(lambda: client.update_trace_settings(settings={"trace_level": ["TENSORS"]}), "is not supported")
    refused(lambda: client.update_trace_settings(settings={"trace_rate": "0", "trace_level": ["TIMESTAMPS"]}), "sample rate must be non-zero")
    refused(lambda: client.update_trace_settings(settings={"trace_file": "/tmp/trace"}), "trace file location can not be updated")
    as_json(client.update_log_settings, settings={"log_verbose_level": 1})
    log = as_json(client.get_log_settings)
    level = log["log_verbose_level"] if over_http else log["settings"]["log_verbose_level"]["uint32_param"]
    assert level == 1, log
    as_json(client.update_log_settings, settings={"log_verbose_level": 0})
    refused(lambda: client.update_log_settings(settings={"log_file": "/tmp/log"}), "log file location can not be updated")


def shared_memory():
    refused(lambda: client.get_system_shared_memory_status(), "shared memory is not supported")
    refused(lambda: client.register_system_shared_memory("r", "/r", 64), "shared memory is not supported")
    refused(lambda: client.get_cuda_shared_memory_status(), "shared memory is not supported")


def streaming():
    inputs = lambda value: [tensor("INPUT0", np.full((1, 16), value, dtype=np.float32)), tensor("INPUT1", np.zeros((1, 16), dtype=np.float32))]
    if kind == "grpc":
        answers = queue.Queue()
        client.start_stream(callback=lambda result, error: answers.put((result, error)))
        for number in range(50):
            client.async_stream_infer("nothing" if number == 25 else "add_sub", inputs(number), request_id=str(number))
        results = [answers.get(timeout=20) for _ in range(50)]
        client.stop_stream()
    else:

        async def exchange():
            async def requests():
                for number in range(50):
                    yield {
                        "model_name": "nothing" if number == 25 else "add_sub",
                        "inputs": inputs(number),
                        "request_id": str(number),
                    }

            return [answer async for answer in client.client.stream_infer(requests())]

        results = loop.run_until_complete(exchange())
    assert len(results) == 50
    for number, (result, error) in enumerate(results):
        if number == 25:
            assert "unknown model" in str(error), error
        else:
            assert error is None, error
            assert result.as_numpy("OUTPUT0")[0][0] == number, number
            assert result.get_response().id == str(number)


def reflection():
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
    from google.protobuf.descriptor_pool import DescriptorPool
    from tritonclient.grpc import model_config_pb2, service_pb2

    channel = grpc.insecure_channel(address)
    database = ProtoReflectionDescriptorDatabase(channel)
    services = set(database.get_services())
    assert {"inference.GRPCInferenceService", "grpc.health.v1.Health"} <= services, services
    pool = DescriptorPool(database)
    described = pool.FindServiceByName("inference.GRPCInferenceService")
    public = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
    signature = lambda method: (method.input_type.full_name, method.output_type.full_name, method.client_streaming, method.server_streaming)
    assert {m.name: signature(m) for m in described.methods} == {m.name: signature(m) for m in public.methods}
    for name, message in [*service_pb2.DESCRIPTOR.message_types_by_name.items(), *model_config_pb2.DESCRIPTOR.message_types_by_name.items()]:
        same_message(pool.FindMessageTypeByName(f"inference.{name}"), message)
    health = health_pb2_grpc.HealthStub(channel)
    assert health.Check(health_pb2.HealthCheckRequest()).status == health_pb2.HealthCheckResponse.SERVING
    assert next(health.Watch(health_pb2.HealthCheckRequest())).status == health_pb2.HealthCheckResponse.SERVING


def same_message(ours, theirs):
    """Fields, their numbers, types and oneofs; nested messages and enums as well."""

    def facts(field):
        kind = field.message_type.full_name if field.message_type else field.enum_type.full_name if field.enum_type else None
        oneof = field.containing_oneof.name if field.containing_oneof else None
        return (field.number, field.type, field.is_repeated, kind, oneof)

    assert {f.name: facts(f) for f in ours.fields} == {f.name: facts(f) for f in theirs.fields}, ours.full_name
    assert set(ours.nested_types_by_name) == set(theirs.nested_types_by_name), ours.full_name
    for name, nested in theirs.nested_types_by_name.items():
        same_message(ours.nested_types_by_name[name], nested)
    for name, enum in theirs.enum_types_by_name.items():
        assert {v.name: v.number for v in ours.enum_types_by_name[name].values} == {v.name: v.number for v in enum.values}


checks = [
    health,
    metadata,
    configuration,
    statistics,
    inference,
    requested_outputs,
    datatypes,
    strings,
    classification,
    large_tensor,
    compression,
    asynchronous,
    schedule_and_parameters,
    errors,
    repository,
    settings,
    shared_memory,
    *([json_data] if over_http else [streaming, reflection]),
]
tell(checks)
