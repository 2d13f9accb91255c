"""The convolutions that read the picture, as int8 ones on its own bytes."""

import numpy as np
from onnx import TensorProto, helper

from .fit import LARGEST
from .graph import Graph

CELL = 4  # pixels of a row that are read as one


def by_cells(weight, stride, pad):
    """Of a convolution over pixels [O, C, k, k], the same one over cells of CELL pixels of a row: [r * O, CELL * C, k, 2], where r =
    CELL / stride. It reads the cell to the left and its own, and computes the r outputs that begin in its own, one after the other."""
    outputs, channels, k, _ = weight.shape
    r = CELL // stride
    if CELL % stride or pad > CELL or (r - 1) * stride + k - pad > CELL:
        raise ValueError(f"a convolution of {k} pixels, stride {stride} and padding {pad} does not fit two cells of {CELL}")
    cells = np.zeros((r, outputs, CELL, channels, k, 2), weight.dtype)
    for at in range(r):
        for column in range(k):
            cell, within = divmod(CELL + at * stride - pad + column, CELL)
            cells[at, :, within, :, :, cell] = weight[:, :, :, column]
    return cells.reshape(r * outputs, CELL * channels, k, 2)


def rounded(steps):
    """Weights [O, C, k, k] in steps of their scale -> whole steps, whose sum over a window is that of the weights: were each rounded by
    itself, the brightness of the picture would move the result."""
    low = np.floor(steps).reshape(*steps.shape[:2], -1)
    rest = steps.reshape(low.shape) - low
    rank = np.argsort(np.argsort(-rest, 2, kind="stable"), 2, kind="stable")
    return (low + (rank < np.rint(rest.sum(2, keepdims=True)))).reshape(steps.shape)


def through_average(steps):
    """Of a convolution behind an average over 2 x 2 pixels, the same one without it, twice as large and in steps of a quarter: each weight
    is spread over four pixels, as evenly as whole steps allow."""
    high, wide = (np.indices(2 * np.array(steps.shape[2:])) % 2)
    return np.floor((steps.repeat(2, 2).repeat(2, 3) + high + 2 * wide) / 4)



def picture_readers(model):
    """{name: (input, averaged)} of the convolutions that read a picture of bytes, [N, H, W, 3], and can do it by cells; `averaged`: behind
    an average over 2 x 2 pixels."""
    graph = Graph(model)
    pictures = {}
    for i in model.graph.input:
        kind = i.type.tensor_type
        sizes = [d.dim_value if d.HasField("dim_value") else 0 for d in kind.shape.dim]
        if kind.elem_type == TensorProto.UINT8 and len(sizes) == 4 and sizes[3] == 3 and sizes[2] % CELL == 0:
            pictures[i.name] = i
    found = {}
    for n in graph.nodes:
        settings = attributes(n)
        if n.op_type != "Conv" or n.input[1] not in graph.constants or not is_plain(settings):
            continue
        tensor, averaged = n.input[0], False
        while tensor not in pictures:
            maker = graph.maker(tensor)
            if maker is None or not passes(maker, averaged):
                break
            averaged = averaged or maker.op_type == "AveragePool"
            tensor = maker.input[0]
        if tensor in pictures and fits_cells(graph.constants[n.input[1]].shape, settings, averaged):
            found[n.name] = (tensor, averaged)
    return found


def attributes(node):
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def is_plain(settings):
    """One stride, one padding, nothing left out."""
    strides, pads = settings.get("strides", [1, 1]), settings.get("pads", [0] * 4)
    alike = len(set(strides)) == 1 and len(set(pads)) == 1 and set(settings.get("dilations", [1])) == {1}
    return alike and settings.get("group", 1) == 1 and settings.get("auto_pad", b"NOTSET") == b"NOTSET"


def passes(node, averaged):
    settings = attributes(node)
    if node.op_type == "Transpose":
        return list(settings.get("perm", [])) == [0, 3, 1, 2]
    if node.op_type == "AveragePool":
        halves = list(settings.get("kernel_shape", [])) == [2, 2] == list(settings.get("strides", []))
        return halves and not averaged and not any(settings.get("pads", [0]))
    return node.op_type in ("Cast", "Identity")


def geometry(shape, settings, averaged):
    """Kernel, stride and padding in pixels of the picture."""
    times = 2 if averaged else 1
    return shape[2] * times, settings.get("strides", [1])[0] * times, settings.get("pads", [0])[0] * times


def fits_cells(shape, settings, averaged):
    k, stride, pad = geometry(shape, settings, averaged)
    if len(shape) != 4 or shape[1] != 3 or shape[2] != shape[3] or CELL % stride:
        return False
    return pad <= CELL and (CELL // stride - 1) * stride + k - pad <= CELL


def read_picture_by_cells(graph, readers):
    """The `readers`, of `picture_readers`, as int8 convolutions on the picture's own bytes.

    The int8 kernel copies a window row by row; three channels are so few bytes that it takes three times as long as the float one, and
    that needs the picture as float planes and its result brought back. CELL pixels of an NHWC row are one cell of 3 * CELL channels
    without moving a byte, and so are the outputs that a cell computes. Pixels are exact: scale 1, zero point 0, padding 0. One whose result
    is not quantised stays as it is. Returns how many were rewritten."""
    one, nought = graph.constant("pixel_scale", np.float32(1)), graph.constant("pixel_zero_point", np.uint8(0))
    rewritten = 0
    for conv in [n for n in graph.nodes if n.name in readers]:
        quantiser = graph.quantiser(conv.output[0])
        if quantiser is None:
            continue
        picture, averaged = readers[conv.name]
        weight = graph.constants[conv.input[1]]
        bias = graph.constants[conv.input[2]] if len(conv.input) > 2 else np.zeros(len(weight), weight.dtype)
        outputs, finest = len(weight), 4 if averaged else 1
        k, stride, pad = geometry(weight.shape, attributes(conv), averaged)
        # A channel that training has emptied has weights of nothing and may have a bias all the same, which must fit 32 bits.
        scale = np.maximum(np.abs(weight).reshape(outputs, -1).max(1).clip(1e-7) / LARGEST / finest, np.abs(bias) / 2**30)
        steps = rounded(weight / scale.reshape(-1, 1, 1, 1))
        if averaged:
            steps = through_average(steps)
        cells = by_cells(steps.clip(-LARGEST, LARGEST).astype(np.int8), stride, pad)
        scale = np.tile(scale, len(cells) // outputs).astype(np.float32)
        integers = {"weight": cells, "bias": np.rint(np.tile(bias, len(cells) // outputs) / scale).astype(np.int32)}
        name = conv.name.removesuffix("/Conv")
        call = lambda op, inputs, output, **attributes: helper.make_node(
            op, inputs, [f"{name}/{output}"], f"{name}/{output}", **attributes
        )
        scales = graph.constant(f"{name}/scale", scale)
        read = [
            call("Reshape", [picture, graph.constant(f"{name}/cell", np.array([0, 0, -1, CELL * 3]))], "cells"),
            call("Transpose", [f"{name}/cells"], "planes", perm=[0, 3, 1, 2]),
            call("DequantizeLinear", [f"{name}/planes", one, nought], "pixels"),
        ]
        for part, values in integers.items():
            zeros = graph.constant(f"{name}/{part}_zero_points", np.zeros(len(scale), values.dtype))
            values = graph.constant(f"{name}/{part}_int", values)
            read.append(call("DequantizeLinear", [values, scales, zeros], part, axis=0))
        inputs = [f"{name}/{part}" for part in ("pixels", "weight", "bias")]
        convolved = helper.make_node(
            "Conv", inputs, conv.output, conv.name, kernel_shape=[k, 2], strides=[stride, 1], pads=[pad, 1, pad, 0]
        )
        graph.put(conv, *read, convolved)
        graph.nodes.remove(conv)
        target, quantiser.output[0] = quantiser.output[0], f"{name}/wide"
        graph.put(
            graph.nodes[graph.nodes.index(quantiser) + 1],
            call("Transpose", [f"{name}/wide"], "rows", perm=[0, 2, 3, 1]),
            call("Reshape", [f"{name}/rows", graph.constant(f"{name}/output", np.array([0, 0, -1, outputs]))], "columns"),
            helper.make_node("Transpose", [f"{name}/columns"], [target], f"{name}/output", perm=[0, 3, 1, 2]),
        )
        rewritten += 1
    return rewritten
