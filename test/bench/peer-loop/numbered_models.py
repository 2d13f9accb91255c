"""Detectors that tell which picture they saw, so that latency is measured alike on every side.

    numbered_models.py MODELS OUT

The number is burnt into the pictures: ten squares along the top, white for 1, lowest bit first (`numberedClip` of sides.ts). The first
candidate of each model is a box whose place is that number, of the last class.

- `ppe`: `ppe_detect_video` of MODELS with its first candidate replaced: the work of the shipped detector.
- `tiny`: that box alone, 320 x 192: next to no work, so that what is around the model is measured.
"""

import os
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BITS = 10
PICTURE = (1280, 720)
models, out = sys.argv[1:3]
with open(f"{models}/ppe_detect_video/labels.txt") as file:
    labels = file.read().split()
CHANNELS = 4 + len(labels)


def tell_number(graph, width, height):
    """Appends nodes that make `number_column` [N, CHANNELS, 1] of `images` [N, height, width, 3]: a box of 2 px around (8 + 4 low, 8 + 4 high)."""
    scale = min(width / PICTURE[0], height / PICTURE[1])
    scaled = [round(side * scale) for side in PICTURE]
    left, top = (width - scaled[0]) // 2, (height - scaled[1]) // 2
    square = scaled[0] / 32

    def constant(name, value):
        graph.initializer.append(numpy_helper.from_array(np.asarray(value), f"number_{name}"))

    def node(op, inputs, output, **attributes):
        graph.node.append(helper.make_node(op, inputs, [f"number_{output}"], name=f"number_{output}_node", **attributes))

    rest = np.zeros((1, CHANNELS - 2, 1), np.float32)
    rest[0, 0] = rest[0, 1] = 2
    rest[0, -1] = 1
    constant("y", np.array([int(top + square / 2)], np.int64))
    constant("xs", np.array([int(left + square * (bit + 0.5)) for bit in range(BITS)], np.int64))
    constant("channel", np.array([0], np.int64))
    constant("white", np.float32(128))
    constant("weights", (2.0 ** np.arange(BITS)).astype(np.float32).reshape(BITS, 1))
    constant("64", np.float32(64))
    constant("4", np.float32(4))
    constant("left", np.float32(8 + left))
    constant("top", np.float32(8 + top))
    constant("flat", np.array([-1, BITS], np.int64))
    constant("column_shape", np.array([-1, 1, 1], np.int64))
    constant("rest", rest)
    constant("0", np.float32(0))
    node("Gather", ["images", "number_y"], "row", axis=1)
    node("Gather", ["number_row", "number_xs"], "points", axis=2)
    node("Gather", ["number_points", "number_channel"], "red", axis=3)
    node("Reshape", ["number_red", "number_flat"], "bytes")
    node("Cast", ["number_bytes"], "values", to=TensorProto.FLOAT)
    node("Greater", ["number_values", "number_white"], "is_white")
    node("Cast", ["number_is_white"], "bits", to=TensorProto.FLOAT)
    node("MatMul", ["number_bits", "number_weights"], "sum")
    node("Reshape", ["number_sum", "number_column_shape"], "number")
    node("Div", ["number_number", "number_64"], "of_64")
    node("Floor", ["number_of_64"], "high")
    node("Mul", ["number_high", "number_64"], "high_64")
    node("Sub", ["number_number", "number_high_64"], "low")
    node("Mul", ["number_low", "number_4"], "low_4")
    node("Add", ["number_low_4", "number_left"], "x")
    node("Mul", ["number_high", "number_4"], "high_4")
    node("Add", ["number_high_4", "number_top"], "y_at")
    node("Mul", ["number_number", "number_0"], "zero")
    node("Add", ["number_zero", "number_rest"], "others")
    node("Concat", ["number_x", "number_y_at", "number_others"], "column", axis=1)


def save(model, name, width, height, candidates):
    folder = f"{out}/{name}"
    os.makedirs(f"{folder}/1", exist_ok=True)
    onnx.save(model, f"{folder}/1/model.onnx")
    shutil.copy(f"{models}/ppe_detect_video/labels.txt", folder)
    with open(f"{folder}/config.pbtxt", "w") as config:
        config.write(
            f"""name: "{name}"
platform: "onnxruntime_onnx"
max_batch_size: 16
input [ {{ name: "images" data_type: TYPE_UINT8 format: FORMAT_NHWC dims: [ {height}, {width}, 3 ] }} ]
output [ {{ name: "output0" data_type: TYPE_FP32 dims: [ {CHANNELS}, {candidates} ] label_filename: "labels.txt" }} ]
dynamic_batching {{ }}
"""
        )


ppe = onnx.load(f"{models}/ppe_detect_video/1/model.onnx")
graph = ppe.graph
output = graph.output[0].name
for each in graph.node:
    each.output[:] = ["found" if name == output else name for name in each.output]
tell_number(graph, 800, 448)
for name, value in (("from", [1]), ("to", [1 << 30]), ("axis", [2])):
    graph.initializer.append(numpy_helper.from_array(np.asarray(value, np.int64), f"tail_{name}"))
graph.node.append(helper.make_node("Slice", ["found", "tail_from", "tail_to", "tail_axis"], ["tail"], name="tail_node"))
graph.node.append(helper.make_node("Concat", ["number_column", "tail"], [output], name="with_number", axis=2))
save(ppe, "ppe", 800, 448, 7350)

images = helper.make_tensor_value_info("images", TensorProto.UINT8, ["batch", 192, 320, 3])
found = helper.make_tensor_value_info("output0", TensorProto.FLOAT, ["batch", CHANNELS, 1260])
tiny = helper.make_graph([], "tiny", [images], [found])
tell_number(tiny, 320, 192)
tiny.initializer.append(numpy_helper.from_array(np.zeros((1, CHANNELS, 1259), np.float32), "nothing"))
tiny.node.append(helper.make_node("Add", ["number_zero", "nothing"], ["tail"]))
tiny.node.append(helper.make_node("Concat", ["number_column", "tail"], ["output0"], axis=2))
save(helper.make_model(tiny, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), "tiny", 320, 192, 1260)
