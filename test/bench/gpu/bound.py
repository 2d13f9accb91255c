#!/usr/bin/env python3
"""ONNX Runtime with input and output that stay on the device: what a model gives without copies from and to the host.

    python3 bound.py MODEL.onnx cuda|tensorrt|cpu DEVICE SECONDS SHAPE...

Prints one line of JSON. Ends with 3 and a line that says why where the package, or its provider, is not installed.
"""

import json
import sys
import time

path, provider, device = sys.argv[1], sys.argv[2], int(sys.argv[3])
seconds, shape = float(sys.argv[4]), [int(size) for size in sys.argv[5:]]
names = {"cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider", "cpu": "CPUExecutionProvider"}


def missing(why):
    print(why, file=sys.stderr)
    sys.exit(3)


try:
    import numpy
    import onnxruntime
except ImportError as error:
    missing(f"Python at {sys.executable} has no onnxruntime: {error}")
name = names[provider]
if name not in onnxruntime.get_available_providers():
    missing(f"onnxruntime of Python at {sys.executable} has no {name} (pip install onnxruntime-gpu)")

options = onnxruntime.SessionOptions()
options.log_severity_level = 3
options.intra_op_num_threads = 1
began = time.perf_counter()
chosen = name if provider == "cpu" else (name, {"device_id": device})
session = onnxruntime.InferenceSession(path, options, providers=[chosen])
if name not in session.get_providers():  # it goes on with the CPU in silence
    missing(f"{name} does not run here: {session.get_providers()}")
load_ms = (time.perf_counter() - began) * 1000

memory = "cpu" if provider == "cpu" else "cuda"
binding = session.io_binding()
pixels = numpy.random.default_rng(1).integers(0, 255, shape, numpy.uint8)
images = onnxruntime.OrtValue.ortvalue_from_numpy(pixels, memory, device)
binding.bind_ortvalue_input(session.get_inputs()[0].name, images)
for output in session.get_outputs():
    binding.bind_output(output.name, memory, device)


def run():
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()


began = time.perf_counter()
run()
first_ms = (time.perf_counter() - began) * 1000
# What the first run allocated, so that no other has to.
for output, value in zip(session.get_outputs(), binding.get_outputs()):
    binding.bind_ortvalue_output(output.name, value)
for _ in range(3):
    run()
runs_ms = []
from_ms = time.time() * 1000
end = time.perf_counter() + seconds
while time.perf_counter() < end:
    began = time.perf_counter()
    run()
    runs_ms.append((time.perf_counter() - began) * 1000)
to_ms = time.time() * 1000
runs_ms.sort()
frames = len(runs_ms) * shape[0]
print(
    json.dumps(
        {
            "perSecond": frames * 1000 / (to_ms - from_ms),
            "p50Ms": runs_ms[len(runs_ms) // 2],
            "loadMs": load_ms,
            "firstMs": first_ms,
            "n": frames,
            "fromMs": from_ms,
            "toMs": to_ms,
            "version": onnxruntime.__version__,
        }
    )
)
