"""Writes a small model with the inputs and outputs of densenet_onnx, whose own file is not in Triton's repository: densenet.py FILE."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

weights = np.random.default_rng(1).normal(size=(1000, 3, 1, 1)).astype(np.float32)
graph = helper.make_graph(
    [
        helper.make_node("GlobalAveragePool", ["data_0"], ["mean"]),
        helper.make_node("Conv", ["mean", "weights"], ["fc6_1"]),
    ],
    "densenet",
    [helper.make_tensor_value_info("data_0", TensorProto.FLOAT, [1, 3, 224, 224])],
    [helper.make_tensor_value_info("fc6_1", TensorProto.FLOAT, [1, 1000, 1, 1])],
    [numpy_helper.from_array(weights, "weights")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, sys.argv[1])
