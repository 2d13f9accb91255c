"""Gives each model below the folders that are named an ONNX file with the tensors of its config.pbtxt, where it has none.

A configuration that is no valid message gets a file without tensors of its own: it is to be refused for what it says.
"""

import pathlib
import sys

import onnx
from google.protobuf import text_format
from onnx import TensorProto, helper
from tritonclient.grpc import model_config_pb2

TYPES = {
    "TYPE_BOOL": TensorProto.BOOL,
    "TYPE_UINT8": TensorProto.UINT8,
    "TYPE_UINT16": TensorProto.UINT16,
    "TYPE_UINT32": TensorProto.UINT32,
    "TYPE_UINT64": TensorProto.UINT64,
    "TYPE_INT8": TensorProto.INT8,
    "TYPE_INT16": TensorProto.INT16,
    "TYPE_INT32": TensorProto.INT32,
    "TYPE_INT64": TensorProto.INT64,
    "TYPE_FP16": TensorProto.FLOAT16,
    "TYPE_FP32": TensorProto.FLOAT,
    "TYPE_FP64": TensorProto.DOUBLE,
    "TYPE_STRING": TensorProto.STRING,
}


def shape_of(tensor, has_batch):
    dims = list(tensor.reshape.shape) if tensor.HasField("reshape") else list(tensor.dims)
    return ([-1] if has_batch else []) + dims


def controls_of(config):
    for control in config.sequence_batching.control_input:
        kind = control.control[0]
        number = "int32_false_true" if len(kind.int32_false_true) else "fp32_false_true"
        yield control.name, TensorProto.INT32 if number == "int32_false_true" else TensorProto.FLOAT


def stub(config):
    """Inputs as they are configured; every output is a constant of its shape, with 1 for a free size."""
    has_batch = config.max_batch_size > 0
    named = lambda sizes, name: [f"{name}_{i}" if size < 0 else size for i, size in enumerate(sizes)]
    element = lambda tensor: TYPES.get(model_config_pb2.DataType.Name(tensor.data_type), TensorProto.FLOAT)
    inputs = [
        helper.make_tensor_value_info(each.name, element(each), named(shape_of(each, has_batch), each.name))
        for each in config.input
    ]
    inputs += [
        helper.make_tensor_value_info(name, kind, ["controls", 1] if has_batch else [1])
        for name, kind in controls_of(config)
    ]
    nodes, outputs = [], []
    for each in config.output:
        sizes = shape_of(each, has_batch)
        count = 1
        for size in sizes:
            count *= max(size, 1)
        kind = element(each)
        value = helper.make_tensor(
            "value", kind, [max(size, 1) for size in sizes], [b""] * count if kind == TensorProto.STRING else [0] * count
        )
        nodes.append(helper.make_node("Constant", [], [f"{each.name}_constant"], value=value))
        nodes.append(helper.make_node("Identity", [f"{each.name}_constant"], [each.name]))
        outputs.append(helper.make_tensor_value_info(each.name, kind, named(sizes, each.name)))
    return inputs, nodes, outputs


def write(config_file):
    model = config_file.parent / "1" / "model.onnx"
    if model.exists():
        return
    config = model_config_pb2.ModelConfig()
    try:
        text_format.Parse(config_file.read_text(), config)
        inputs, nodes, outputs = stub(config)
    except Exception:  # It is the configuration that is wrong, and that is what the case is about.
        inputs = [helper.make_tensor_value_info("INPUT", TensorProto.FLOAT, [1])]
        nodes = [helper.make_node("Identity", ["INPUT"], ["OUTPUT"])]
        outputs = [helper.make_tensor_value_info("OUTPUT", TensorProto.FLOAT, [1])]
    if config.platform == "ensemble" or not outputs:
        model.parent.mkdir(exist_ok=True)
        return
    graph = helper.make_graph(nodes, "stub", inputs, outputs)
    model.parent.mkdir(exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), model)


for folder in sys.argv[1:]:
    for path in sorted(pathlib.Path(folder).rglob("config.pbtxt")):
        write(path)
