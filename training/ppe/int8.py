"""Static int8 (QDQ) of an exported graph, and two rewritings that ONNX Runtime's quantiser does not make.

Both leave what the network computes as it is, up to the rounding of weights and activations; measured on one thread at 416 px (AVX-512,
AMX), 5.80 ms fall to 5.22: the convolutions that read the picture 0.99 -> 0.55 with what moves their tensors about, the concatenations
0.45 -> 0.14.
"""

import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .augment import letterbox

CALIBRATION_PICTURES = 200
FIT_PICTURES, FIT_WINDOWS = 40, 200  # pictures that weights are rounded by, and windows of each for every convolution
FIRST = ("/stem/stem.0/stem.0.0/Conv", "/context/stem/Conv")  # the convolutions that read the picture, one of either path
CELL = 4  # pixels of a row that are read as one
LARGEST = 64  # of a weight: ONNX Runtime's AVX2 kernels add two products of a byte and a weight in 16 bits, and 2 * 255 * 65 does not fit


class Pictures:
    """Calibration reader: letterboxed training pictures, evenly over the sets."""

    def __init__(self, store, count, size, seed=3):
        rng = np.random.default_rng(seed)
        by_set = {}
        for i, (_, s) in enumerate(store.samples):
            by_set.setdefault(s.set, []).append(i)
        order = [rng.permutation(v) for v in by_set.values()]
        picks = [o[k] for k in range(max(map(len, order))) for o in order if k < len(o)][:count]
        self.feed = iter([int(i) for i in picks])
        self.store, self.size = store, size

    def get_next(self):
        i = next(self.feed, None)
        if i is None:
            return None
        return {"images": letterbox(np.asarray(self.store[i][1]), *self.size)[0][None]}


def quantise(source, target, store, size, count=CALIBRATION_PICTURES):
    """The fp32 file `source`, quantised into `target`: uint8 activations with zero point 0 after ReLU, int8 weights of 7 bits per channel,
    scales from `count` training pictures of `size` (width, height)."""
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory() as tmp:
        prepared = f"{tmp}/prepared.onnx"
        quant_pre_process(str(source), prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared, str(target), Pictures(store, count, size), quant_format=QuantFormat.QDQ, per_channel=True,
            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, reduce_range=True,
            op_types_to_quantize=["Conv", "Relu", "Clip", "MaxPool", "Concat", "Resize", "Add"],
            nodes_to_exclude=unquantised(onnx.load(prepared)),
            calibrate_method=CalibrationMethod.MinMax,
            extra_options={"CalibMovingAverage": True},
        )
        graph = Graph(onnx.load(target))
        fit_weights(graph, onnx.load(prepared), Pictures(store, FIT_PICTURES, size))
    read_picture_by_cells(graph)
    share_scales(graph)
    onnx.save(graph.finished(), target)


def unquantised(model):
    """Nodes that the quantiser leaves alone. The two 1x1 output convolutions per level and everything behind them stay float (box
    offsets are decoded by exp and scaled by up to 32 px, a class logit step of 1/10 moves scores visibly; together 0.3 % of the work);
    the convolutions that read the picture are quantised by `read_picture_by_cells`."""
    ends = [n for n in model.graph.node if n.op_type == "Conv" and n.name.endswith(("/box/Conv", "/cls/Conv"))]
    reach, behind = {o for n in ends for o in n.output}, []
    for n in model.graph.node:
        if n not in ends and reach & set(n.input):
            behind.append(n.name)
            reach |= set(n.output)
    return [n.name for n in model.graph.node if n.name.endswith(FIRST)] + [n.name for n in ends] + behind


def fit_weights(graph, model, pictures):
    """Rounds the weights of the quantised convolutions so that their results stay, not the weights themselves: with 7 bits the nearest
    step loses twice as much as it does with 8.

    graph: what the quantiser made of the float `model`. What each convolution reads on `pictures` says how the error of one weight
    is made up for by those that are rounded after it."""
    weights = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    floats = {n.name: n for n in model.graph.node if n.op_type == "Conv"}
    quantised = [n for n in graph.nodes if n.op_type == "Conv" and getattr(graph.maker(n.input[1]), "op_type", "") == "DequantizeLinear"]
    inputs = moments([floats[n.name] for n in quantised], model, weights, pictures)
    for conv in quantised:
        steps, scale, _ = graph.maker(conv.input[1]).input
        bias, bias_scale, _ = graph.maker(conv.input[2]).input
        weight, size = weights[floats[conv.name].input[1]], graph.constants[scale].reshape(-1, 1)
        means, products = inputs[conv.name]
        fitted, shift = np.empty_like(weight), np.empty(len(weight))
        for mean, product, rows in zip(means, products, np.split(np.arange(len(weight)), len(means))):
            flat = weight[rows].reshape(len(rows), -1).astype(np.float64)
            whole = rounded_by(flat, size[rows], product)
            fitted[rows] = whole.reshape(fitted[rows].shape)
            shift[rows] = (flat - whole * size[rows]) @ mean
        graph.constants[steps] = fitted.astype(np.int8)
        graph.constants[bias] = graph.constants[bias] + np.rint(shift / graph.constants[bias_scale]).astype(np.int32)


def moments(convs, model, weights, pictures):
    """{name: (means [groups, K], means of products [groups, K, K])} of the K values that the convolutions read at a time, at places drawn
    anew for each picture."""
    import onnxruntime as ort

    opened = onnx.ModelProto()
    opened.CopyFrom(model)
    tensors = sorted({n.input[0] for n in convs})
    opened.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in tensors)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(opened.SerializeToString(), options, providers=["CPUExecutionProvider"])
    rng, sums, count = np.random.default_rng(5), {n.name: [0, 0] for n in convs}, 0
    while (feed := pictures.get_next()) is not None:
        values, count = dict(zip(tensors, session.run(tensors, feed))), count + FIT_WINDOWS
        for n in convs:
            settings = {a.name: helper.get_attribute_value(a) for a in n.attribute}
            read = windows(values[n.input[0]][0], weights[n.input[1]].shape[2:], settings, rng)
            sums[n.name][0] += read.sum(1)
            sums[n.name][1] += read.transpose(0, 2, 1) @ read
    return {name: [part / count for part in parts] for name, parts in sums.items()}


def windows(picture, kernel, settings, rng):
    """FIT_WINDOWS of the windows [groups, FIT_WINDOWS, K] that a convolution reads of [C, H, W]."""
    top, left, bottom, right = settings.get("pads", [0] * 4)
    padded = np.pad(picture, ((0, 0), (top, bottom), (left, right)))
    every = np.lib.stride_tricks.sliding_window_view(padded, kernel, (1, 2))
    down, across = settings.get("strides", [1, 1])
    every = every[:, ::down, ::across]
    at = rng.integers(0, every.shape[1:3], (FIT_WINDOWS, 2))
    chosen = every[:, at[:, 0], at[:, 1]].reshape(settings.get("group", 1), -1, FIT_WINDOWS, every[0, 0, 0].size)
    return np.ascontiguousarray(chosen.transpose(0, 2, 1, 3)).reshape(len(chosen), FIT_WINDOWS, -1)


def rounded_by(weight, scale, products):
    """Weights [O, K] -> whole steps of `scale` [O, 1]. One after the other is rounded, those of the strongest inputs first, and its
    error given to those that are still to come, in the least squares sense; `products` [K, K] are the means of the products of their
    inputs (GPTQ, Frantar et al. 2022)."""
    products = products.astype(np.float64)
    order = np.argsort(-np.diag(products), kind="stable")
    damped = products[np.ix_(order, order)] + np.eye(len(order)) * (0.01 * np.diag(products).mean() + 1e-12)
    shares = np.linalg.cholesky(np.linalg.inv(damped)).T
    left, whole = weight[:, order].copy(), np.empty_like(weight)
    for k in range(len(order)):
        step = np.rint(left[:, k] / scale[:, 0]).clip(-LARGEST, LARGEST)
        whole[:, order[k]] = step
        left[:, k + 1 :] -= np.outer((left[:, k] - step * scale[:, 0]) / shares[k, k], shares[k, k + 1 :])
    return whole


class Graph:
    """Nodes and constants of a model, by the names of their tensors, while they change."""

    def __init__(self, model):
        self.model, self.nodes = model, list(model.graph.node)
        self.constants = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}

    def maker(self, tensor):
        return next((n for n in self.nodes if tensor in n.output), None)

    def quantiser(self, tensor):
        """The QuantizeLinear that `tensor` goes through, behind activations that its range makes needless."""
        while True:
            n = next((n for n in self.nodes if tensor in n.input), None)
            if n is None or n.op_type not in ("Relu", "Clip", "QuantizeLinear"):
                return None
            if n.op_type == "QuantizeLinear":
                return n
            tensor = n.output[0]

    def constant(self, name, value):
        self.constants[name] = value
        return name

    def put(self, before, *nodes):
        at = self.nodes.index(before)
        self.nodes[at:at] = nodes

    def finished(self):
        """The model without what nothing reads any more."""
        outputs = {o.name for o in self.model.graph.output}
        while True:
            read = outputs.union(*(n.input for n in self.nodes))
            kept = [n for n in self.nodes if read & set(n.output)]
            if len(kept) == len(self.nodes):
                break
            self.nodes = kept
        graph = self.model.graph
        constants = [numpy_helper.from_array(v, k) for k, v in self.constants.items() if k in read]
        del graph.node[:], graph.initializer[:], graph.value_info[:]
        graph.node.extend(kept), graph.initializer.extend(constants)
        return self.model


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


def read_picture_by_cells(graph):
    """The convolutions that read the picture, as int8 ones on its own bytes.

    The int8 kernel copies a window row by row; three channels are so few bytes that it takes three times as long as the float one, and
    that needs the picture as float planes and its result brought back. CELL pixels of an NHWC row are one cell of 3 * CELL channels
    without moving a byte, and so are the outputs that a cell computes. Pixels are exact: scale 1, zero point 0, padding 0."""
    one, nought = graph.constant("pixel_scale", np.float32(1)), graph.constant("pixel_zero_point", np.uint8(0))
    for conv in [n for n in graph.nodes if n.name.endswith(FIRST)]:
        weight, bias = (graph.constants[name] for name in conv.input[1:])
        averaged = graph.maker(conv.input[0]).op_type == "AveragePool"
        outputs, finest = len(weight), 4 if averaged else 1
        # A channel that training has emptied has weights of nothing and may have a bias all the same, which must fit 32 bits.
        scale = np.maximum(np.abs(weight).reshape(outputs, -1).max(1).clip(1e-7) / LARGEST / finest, np.abs(bias) / 2**30)
        steps, stride, pad = rounded(weight / scale.reshape(-1, 1, 1, 1)), 2, 1
        if averaged:
            steps, stride, pad = through_average(steps), 4, 2
        cells = by_cells(steps.clip(-LARGEST, LARGEST).astype(np.int8), stride, pad)
        scale = np.tile(scale, len(cells) // outputs).astype(np.float32)
        integers = {"weight": cells, "bias": np.rint(np.tile(bias, len(cells) // outputs) / scale).astype(np.int32)}
        name = conv.name.removesuffix("/Conv")
        call = lambda op, inputs, output, **attributes: helper.make_node(
            op, inputs, [f"{name}/{output}"], f"{name}/{output}", **attributes
        )
        scales = graph.constant(f"{name}/scale", scale)
        read = [
            call("Reshape", ["images", graph.constant(f"{name}/cell", np.array([0, 0, -1, CELL * 3]))], "cells"),
            call("Transpose", [f"{name}/cells"], "planes", perm=[0, 3, 1, 2]),
            call("DequantizeLinear", [f"{name}/planes", one, nought], "pixels"),
        ]
        for part, values in integers.items():
            zeros = graph.constant(f"{name}/{part}_zero_points", np.zeros(len(scale), values.dtype))
            values = graph.constant(f"{name}/{part}_int", values)
            read.append(call("DequantizeLinear", [values, scales, zeros], part, axis=0))
        inputs = [f"{name}/{part}" for part in ("pixels", "weight", "bias")]
        k = cells.shape[2]
        convolved = helper.make_node(
            "Conv", inputs, conv.output, conv.name, kernel_shape=[k, 2], strides=[stride, 1], pads=[pad, 1, pad, 0]
        )
        graph.put(conv, *read, convolved)
        graph.nodes.remove(conv)
        quantiser = graph.quantiser(conv.output[0])
        target, quantiser.output[0] = quantiser.output[0], f"{name}/wide"
        graph.put(
            graph.nodes[graph.nodes.index(quantiser) + 1],
            call("Transpose", [f"{name}/wide"], "rows", perm=[0, 2, 3, 1]),
            call("Reshape", [f"{name}/rows", graph.constant(f"{name}/output", np.array([0, 0, -1, outputs]))], "columns"),
            helper.make_node("Transpose", [f"{name}/columns"], [target], f"{name}/output", perm=[0, 3, 1, 2]),
        )


def share_scales(graph):
    """One scale for all that is joined by a concatenation, or passes a maximum or an enlargement on its way there: the largest of theirs.
    Then a concatenation copies bytes; with scales of their own each byte is looked up in a table."""
    group = {}

    def root(tensor):
        while group.setdefault(tensor, tensor) != tensor:
            tensor = group[tensor]
        return tensor

    for n in graph.nodes:
        target = n.op_type in ("Concat", "Resize", "MaxPool") and graph.quantiser(n.output[0])
        if not target:
            continue
        for tensor in n.input if n.op_type == "Concat" else n.input[:1]:
            group[root(graph.maker(tensor).input[0])] = root(target.output[0])
    scale_of = {n.output[0]: n.input[1] for n in graph.nodes if n.op_type == "QuantizeLinear"}
    largest = {}
    for tensor in group:
        largest[root(tensor)] = max(largest.get(root(tensor), 0), graph.constants[scale_of[tensor]])
    for tensor in group:
        graph.constants[scale_of[tensor]] = largest[root(tensor)]
    for conv in (n for n in graph.nodes if n.op_type == "Conv"):
        follow_scale(graph, *(graph.maker(name) for name in conv.input))


def follow_scale(graph, pixels, weight, bias):
    """A quantised bias counts in steps of its input's scale times that of the weights."""
    if weight is None:
        return  # a convolution that stays float
    old = graph.constants[bias.input[1]]
    new = (graph.constants[pixels.input[1]] * graph.constants[weight.input[1]]).astype(np.float32)
    if not np.allclose(old, new, rtol=1e-4):
        graph.constants[bias.input[0]] = np.rint(graph.constants[bias.input[0]] * old.astype(np.float64) / new).astype(np.int32)
        graph.constants[bias.input[1]] = new
