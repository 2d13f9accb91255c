"""Weights rounded so that the results of a layer stay: with 7 bits the nearest step loses twice as much as it does with 8."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

FIT_WINDOWS = 200  # of a picture, for every convolution
LARGEST = 64  # of a weight: ONNX Runtime's AVX2 kernels add two products of a byte and a weight in 16 bits, and 2 * 255 * 65 does not fit
MOST_INPUTS = 2400  # of one output: what is kept of them grows with the square


def fit_weights(graph, model, pictures, largest=LARGEST):
    """Rounds the weights of the quantised convolutions so that their results stay, not the weights themselves.

    graph: what the quantiser made of the float `model`. What each convolution reads on `pictures` says how the error of one weight
    is made up for by those that are rounded after it. Convolutions of more than two dimensions or with gaps keep the nearest steps."""
    weights = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    floats = {n.name: n for n in model.graph.node if n.op_type == "Conv" and fits(n, weights)}
    quantised = [
        n for n in graph.nodes
        if n.op_type == "Conv" and n.name in floats and getattr(graph.maker(n.input[1]), "op_type", "") == "DequantizeLinear"
    ]
    inputs = moments([floats[n.name] for n in quantised], model, weights, pictures)
    for conv in quantised:
        steps, scale, _ = graph.maker(conv.input[1]).input
        weight = weights[floats[conv.name].input[1]]
        size = np.broadcast_to(graph.constants[scale].reshape(-1, 1), (len(weight), 1))
        means, products = inputs[conv.name]
        fitted, shift = np.empty_like(weight), np.empty(len(weight))
        for mean, product, rows in zip(means, products, np.split(np.arange(len(weight)), len(means))):
            flat = weight[rows].reshape(len(rows), -1).astype(np.float64)
            whole = rounded_by(flat, size[rows], product, largest)
            fitted[rows] = whole.reshape(fitted[rows].shape)
            shift[rows] = (flat - whole * size[rows]) @ mean
        graph.constants[steps] = fitted.astype(np.int8)
        made = graph.maker(conv.input[2]) if len(conv.input) > 2 else None
        if made is not None:
            bias, bias_scale = made.input[:2]
            graph.constants[bias] = graph.constants[bias] + np.rint(shift / graph.constants[bias_scale]).astype(np.int32)


def fits(conv, weights):
    settings = {a.name: helper.get_attribute_value(a) for a in conv.attribute}
    weight = weights.get(conv.input[1])
    return (
        weight is not None
        and weight.ndim == 4
        and weight[0].size <= MOST_INPUTS
        and settings.get("auto_pad", b"NOTSET") == b"NOTSET"
        and set(settings.get("dilations", [1])) == {1}
    )


def moments(convs, model, weights, pictures):
    """{name: (means [groups, K], means of products [groups, K, K])} of the K values that the convolutions read at a time, at places drawn
    anew for each picture."""
    import onnxruntime as ort

    opened = onnx.ModelProto()
    opened.CopyFrom(model)
    tensors = sorted({n.input[0] for n in convs})
    known = {o.name for o in opened.graph.output}
    opened.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in tensors if name not in known)
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


def rounded_by(weight, scale, products, largest=LARGEST):
    """Weights [O, K] -> whole steps of `scale` [O, 1]. One after the other is rounded, those of the strongest inputs first, and its
    error given to those that are still to come, in the least squares sense; `products` [K, K] are the means of the products of their
    inputs (GPTQ, Frantar et al. 2022)."""
    products = products.astype(np.float64)
    order = np.argsort(-np.diag(products), kind="stable")
    damped = products[np.ix_(order, order)] + np.eye(len(order)) * (0.01 * np.diag(products).mean() + 1e-12)
    shares = np.linalg.cholesky(np.linalg.inv(damped)).T
    left, whole = weight[:, order].copy(), np.empty_like(weight)
    for k in range(len(order)):
        step = np.rint(left[:, k] / scale[:, 0]).clip(-largest, largest)
        whole[:, order[k]] = step
        left[:, k + 1 :] -= np.outer((left[:, k] - step * scale[:, 0]) / shares[k, k], shares[k, k + 1 :])
    return whole
