"""One-thread speed of the published models as ratios to a YOLOv8n-topology fp32 network of the same input size.

`python -m ppe.speed --models ../models`. The runs are interleaved, so that a busy machine slows all alike; ratios
are of medians, and the quartiles say how calm the machine was.
"""

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch

from .export import VARIANTS
from .yolov8n_topology import Yolov8nTopology


def session(path):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def yardstick(path, size):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Yolov8nTopology().eval(), torch.zeros(1, 3, size[1], size[0]), path, opset_version=17, dynamo=False,
            input_names=["images"], output_names=["output0"],
        )


def measure(models, size, rounds):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 255, (1, size[1], size[0], 3), np.uint8)
    planes = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)).astype(np.float32) / 255
    with tempfile.TemporaryDirectory() as tmp:
        yardstick(f"{tmp}/v8n.onnx", size)
        runs = {"yolov8n topology fp32": (session(f"{tmp}/v8n.onnx"), planes)}
    for name in VARIANTS:
        runs[name] = (session(Path(models) / name / "1" / "model.onnx"), pixels)
    times = {k: [] for k in runs}
    for i in range(rounds + 3):
        for name, (s, x) in runs.items():
            begin = time.perf_counter()
            s.run(None, {"images": x})
            if i >= 3:
                times[name].append(1e3 * (time.perf_counter() - begin))
    base = np.median(times["yolov8n topology fp32"])
    out = {}
    for name, t in times.items():
        low, mid, high = np.percentile(t, [25, 50, 75])
        out[name] = {"ms": round(mid, 1), "quartiles": [round(low, 1), round(high, 1)], "ratio": round(base / mid, 2)}
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--models", default="../models")
    p.add_argument("--sizes", nargs="+", default=["416x416", "800x448", "640x640"], help="width x height")
    p.add_argument("--rounds", type=int, default=40)
    a = p.parse_args()
    print(json.dumps({s: measure(a.models, [int(n) for n in s.split("x")], a.rounds) for s in a.sizes}, indent=1))


if __name__ == "__main__":
    main()
