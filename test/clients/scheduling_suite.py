"""Tries queues, sequences and the response cache of a running server with tritonclient, unmodified.

Usage: scheduling_suite.py http|grpc HOST:PORT METRICS_HOST:PORT MODELS_FOLDER

Prints a JSON object: name of each check -> "ok", or what went wrong.
"""

import queue
import re
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from outcomes import tell
from tritonclient.utils import InferenceServerException

kind, address, metrics, models = sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])
over_http = kind == "http"
if over_http:
    import tritonclient.http as api
else:
    import tritonclient.grpc as api

threads = ThreadPoolExecutor(8)
unavailable = "503" if over_http else "StatusCode.UNAVAILABLE"
invalid = "400" if over_http else "StatusCode.INVALID_ARGUMENT"


def infer(model, value=0.0, input="in0", **kwargs):
    tensor = api.InferInput(input, [1, 1], "FP32")
    tensor.set_data_from_numpy(np.array([[value]], dtype=np.float32))
    with api.InferenceServerClient(address) as client:
        return client.infer(model, [tensor], **kwargs)


def later(*args, **kwargs):
    return threads.submit(infer, *args, **kwargs)


def refused(outcome, status, text):
    try:
        outcome()
    except InferenceServerException as error:
        assert error.status() == status, error.status()
        assert text in error.message(), error.message()
        return
    raise AssertionError("was not refused")


def eventually(condition, what):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def a_while():
    """Until the server has let 0.3 s pass: this model waits that long for company."""
    infer("no_timeout")


def pending(model):
    text = urllib.request.urlopen(f"http://{metrics}/metrics").read().decode()
    found = re.search(rf'nv_inference_pending_request_count{{model="{model}",version="1"}} (\d+)', text)
    return int(found[1]) if found else 0


class Gate:
    """A model that holds back negative values until it is opened, and then tells whose turn came when."""

    def __init__(self, model):
        self.model = model
        self.folder = models / model / "1"
        (self.folder / "open").unlink(missing_ok=True)
        for left in [*self.folder.glob("began*"), *self.folder.glob("ran*")]:
            left.unlink()
        self.waiting = 0

    def send(self, value, **kwargs):
        return later(self.model, value, "value", **kwargs)

    def hold(self):
        """Occupies an instance until the gate is opened."""
        sent = self.send(-1)
        eventually((self.folder / "began-1").exists, "the first to run")
        return sent

    def queue(self, value, **kwargs):
        """Sends, and returns when it waits behind those that were queued before."""
        self.waiting += 1
        sent = self.send(value, **kwargs)
        eventually(lambda: pending(self.model) == self.waiting, f"{self.waiting} waiting")
        return sent

    def open(self):
        (self.folder / "open").touch()

    def ran(self, value):
        return (self.folder / f"ran{value}").exists()


def turn(sent):
    return int(sent.result().as_numpy("turn")[0][0])


def full_queue():
    outcomes = [later("full") for _ in range(3)]
    texts = []
    for outcome in outcomes:
        error = outcome.exception()
        assert isinstance(error, InferenceServerException) and error.status() == unavailable, error
        texts.append(re.sub(r"^\[request id: \S+\] ", "", error.message()))
    assert sorted(texts) == ["Exceeds maximum queue size", "Request timeout expired", "Request timeout expired"], texts


def timeouts():
    expired = "Request timeout expired"
    refused(lambda: infer("may_shorten", timeout=50_000), unavailable, expired)
    refused(lambda: infer("may_not_lengthen", timeout=60_000_000), unavailable, expired)
    # Neither of these has a time-out that a request could shorten.
    for model in ("no_timeout", "no_override"):
        assert infer(model, 3.0, timeout=1).as_numpy("out0")[0][0] == 3


def priorities():
    gate = Gate("levels")
    first = gate.hold()
    waiting = [gate.queue(number, priority=priority) for number, priority in enumerate((3, 0, 1, 2, 9, 1))]
    gate.open()
    # 0 and 9 are the default level, 2; within a level the first that came is first.
    begun = turn(first)
    assert [turn(sent) - begun for sent in waiting] == [6, 3, 1, 4, 5, 2]


def delayed():
    gate = Gate("delayed")
    first = gate.hold()
    late = gate.queue(1, timeout=1_000)
    a_while()
    other = gate.queue(2)
    gate.open()
    begun = turn(first)
    assert [turn(late) - begun, turn(other) - begun] == [2, 1]


def order():
    for model, kept in (("ordered", True), ("unordered", False)):
        gate = Gate(model)
        first = gate.hold()
        second = gate.send(2)
        eventually(lambda: gate.ran(2), "the second to run")
        if kept:
            a_while()
        else:
            second.result(timeout=20)
        assert second.done() is not kept and not first.done()
        gate.open()
        first.result(timeout=20)
        second.result(timeout=20)


def sequences():
    for model in ("mirror_direct", "mirror_oldest"):
        said = [
            infer(model, value, "INPUT", sequence_id=id, sequence_start=start, sequence_end=end)
            for value, id, start, end in (
                (1, 7, True, False),
                (2, 8, True, False),
                (3, 7, False, False),
                (4, 7, False, True),
                (5, 8, False, True),
            )
        ]
        columns = [[float(each.as_numpy(name)[0][0]) for name in ("VALUE", "S", "E", "R", "ID")] for each in said]
        assert columns == [[1, 1, 0, 1, 7], [2, 1, 0, 1, 8], [3, 0, 0, 1, 7], [4, 0, 1, 1, 7], [5, 0, 1, 1, 8]], columns
    said = infer("named", 1, "INPUT", sequence_id="gate-3", sequence_start=True, sequence_end=True)
    assert said.as_numpy("ID")[0][0] in (b"gate-3", "gate-3")


def sequence_state():
    for model in ("sum_direct", "sum_oldest"):
        sums = []
        for step in range(3):
            for id, value in ((1, 1), (2, 10)):
                said = infer(model, value, "INPUT", sequence_id=id, sequence_start=step == 0, sequence_end=step == 2)
                sums.append(float(said.as_numpy("OUTPUT")[0][0]))
        assert sums == [1, 10, 2, 20, 3, 30], sums


def sequence_errors():
    for model in ("sum_direct", "sum_oldest"):
        id_missing = "must specify a non-zero or non-empty correlation ID"
        refused(lambda: infer(model, 1, "INPUT"), invalid, id_missing)
        start_missing = "must specify the START flag on the first request of the sequence"
        refused(lambda: infer(model, 1, "INPUT", sequence_id=77), invalid, start_missing)


def sequence_timeouts():
    expired = "timeout of the corresponding sequence has been expired"
    for model in ("slots", "slots_oldest"):
        # With a slot a time-out says nothing.
        for id in (1, 2, 3, 4):
            infer(model, 1, "INPUT", sequence_id=id, sequence_start=True, timeout=1)
        refused(lambda: infer(model, 1, "INPUT", sequence_id=5, sequence_start=True, timeout=1_000), unavailable, expired)
        refused(lambda: infer(model, 1, "INPUT", sequence_id=5), invalid, "must specify the START flag")
        for id in (1, 2, 3, 4):
            infer(model, 1, "INPUT", sequence_id=id, sequence_end=True)


def idle_sequence():
    # Four have a place; the next gets one when the first has been idle for too long.
    for id in (5, 6, 7, 8, 9):
        infer("soon_idle", 1, "INPUT", sequence_id=id, sequence_start=True)
    refused(lambda: infer("soon_idle", 1, "INPUT", sequence_id=5), invalid, "must specify the START flag")


def cache():
    def counts():
        with api.InferenceServerClient(address) as client:
            stats = client.get_inference_statistics("cached") if over_http else client.get_inference_statistics("cached", as_json=True)
        [stats] = stats["model_stats"]
        part = lambda name: int(stats["inference_stats"].get(name, {}).get("count", 0))
        return np.array([part("cache_miss"), part("cache_hit"), part("success"), int(stats.get("inference_count", 0))])

    before = counts()
    value = 1.5 if over_http else 2.5
    for _ in range(3):
        assert infer("cached", value).as_numpy("out0")[0][0] == value
    # A hit is a success, but no inference.
    np.testing.assert_array_equal(counts() - before, [1, 2, 3, 1])


def sequence_stream():
    answers = queue.Queue()
    with api.InferenceServerClient(address) as client:
        client.start_stream(callback=lambda result, error: answers.put((result, error)))
        for step in range(20):
            for id in ("left", "right"):
                tensor = api.InferInput("INPUT", [1, 1], "FP32")
                tensor.set_data_from_numpy(np.array([[1 if id == "left" else 100]], dtype=np.float32))
                flags = {"sequence_start": step == 0, "sequence_end": step == 19}
                client.async_stream_infer("sum_oldest", [tensor], request_id=f"{id}{step}", sequence_id=id, **flags)
        for step in range(20):
            for id in ("left", "right"):
                result, error = answers.get(timeout=20)
                assert error is None, error
                assert result.get_response().id == f"{id}{step}"
                assert result.as_numpy("OUTPUT")[0][0] == (step + 1) * (1 if id == "left" else 100)


checks = [
    full_queue,
    timeouts,
    priorities,
    delayed,
    order,
    sequences,
    sequence_state,
    sequence_errors,
    sequence_timeouts,
    idle_sequence,
    cache,
    *([] if over_http else [sequence_stream]),
]
tell(checks)
