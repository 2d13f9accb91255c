"""AP50 of the published int8 models on the valid photographs, added exactly and as this processor does.

`python -m ppe.arithmetic --data ../../shared/datasets`. ONNX Runtime multiplies uint8 activations by int8 weights and adds two products
in 16 bits on x64 with AVX2 and without VNNI, which saturates with weights of 8 bits. With VNNI it adds in 32 bits, and so it does everywhere
with `session.x64quantprecision` (slower). Fails where the two are more than 0.003 apart, or a model has lost more than 0.005 of what it had
with weights of 8 bits added exactly.
"""

import argparse
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .cache import load
from .evaluate import detect, onnx_runner, report
from .export import IMAGE_SIZE, INT8, VIDEO, VIDEO_SIZE

SIZES = {INT8: IMAGE_SIZE, VIDEO: VIDEO_SIZE}
BEFORE = {INT8: 0.664, VIDEO: 0.618}  # mean AP50 of the files with weights of 8 bits, added exactly
MOST_APART, MOST_LOST = 0.003, 0.005


def saturates():
    """Whether this processor adds two products in 16 bits."""
    import onnxruntime as ort

    width = 64
    weight = numpy_helper.from_array(np.full((width, 32), 127, np.int8), "w")
    tensor = lambda name, kind, shape: helper.make_tensor_value_info(name, kind, shape)
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])], "g",
        [tensor("x", TensorProto.UINT8, [8, width])], [tensor("y", TensorProto.INT32, [8, 32])], [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return int(session.run(None, {"x": np.full((8, width), 255, np.uint8)})[0][0, 0]) != width * 255 * 127


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--models", default="../models")
    p.add_argument("--data", required=True, help="folder of the data sets")
    p.add_argument("--cache", default=".cache/ppe", help="where decoded pictures go")
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    store = load(a.data, a.cache, "valid")
    print("this processor adds", "in 16 bits: sums may saturate" if saturates() else "exactly: both columns must be the same", flush=True)
    print("| model | exact | as this processor | 8 bits, exact |\n|---|---|---|---|")
    failed = []
    for name, size in SIZES.items():
        path = Path(a.models) / name / "1" / "model.onnx"
        score = lambda exact: report(store, detect(onnx_runner(path, a.threads, exact), store, size), False)["mean"]["ap50"]
        exact, here = score(True), score(False)
        print(f"| {name} | {exact:.4f} | {here:.4f} | {BEFORE[name]:.3f} |", flush=True)
        if abs(exact - here) > MOST_APART:
            failed.append(f"{name}: {abs(exact - here):.4f} apart, {MOST_APART} allowed")
        if min(exact, here) < BEFORE[name] - MOST_LOST:
            failed.append(f"{name}: {BEFORE[name] - min(exact, here):.4f} lost, {MOST_LOST} allowed")
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()
