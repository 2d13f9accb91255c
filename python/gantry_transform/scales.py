"""One scale for all that is joined: concatenations then copy bytes."""

import numpy as np

MOVES = ("Concat", "Resize", "MaxPool")


def share_scales(graph):
    """One scale and zero point for all that is joined by a concatenation, or passes a maximum or an enlargement on its way there: those of
    the range that holds all of theirs. Then a concatenation copies bytes; with scales of their own each byte is looked up in a table."""
    group = {}

    def root(tensor):
        while group.setdefault(tensor, tensor) != tensor:
            tensor = group[tensor]
        return tensor

    quantisers = {n.output[0]: n for n in graph.nodes if n.op_type == "QuantizeLinear"}
    for n in graph.nodes:
        target = n.op_type in MOVES and graph.quantiser(n.output[0])
        if not target:
            continue
        makers = [graph.maker(tensor) for tensor in (n.input if n.op_type == "Concat" else n.input[:1])]
        if any(m is None or m.op_type != "DequantizeLinear" or m.input[0] not in quantisers for m in makers):
            continue  # a part of it is no activation
        for maker in makers:
            group[root(maker.input[0])] = root(target.output[0])
    ranges = {}
    for tensor in group:
        low, high = range_of(graph, quantisers[tensor])
        known = ranges.get(root(tensor), (low, high))
        ranges[root(tensor)] = min(low, known[0]), max(high, known[1])
    for tensor in group:
        low, high = ranges[root(tensor)]
        _, scale, zero_point = quantisers[tensor].input
        kind = graph.constants[zero_point].dtype
        step = np.float32((high - low) / 255)
        lowest = np.iinfo(kind).min
        graph.constants[scale] = step.reshape(graph.constants[scale].shape).astype(np.float32)
        zero = np.rint(lowest - low / step)
        graph.constants[zero_point] = np.asarray(zero, kind).reshape(graph.constants[zero_point].shape)
    for layer in (n for n in graph.nodes if n.op_type in ("Conv", "Gemm") and len(n.input) > 2):
        follow_scale(graph, *(graph.maker(name) for name in layer.input))


def range_of(graph, quantiser):
    """Lowest and highest value that its steps stand for."""
    _, scale, zero_point = quantiser.input
    step, zero = float(graph.constants[scale]), int(graph.constants[zero_point])
    kind = np.iinfo(graph.constants[zero_point].dtype)
    return (kind.min - zero) * step, (kind.max - zero) * step


def follow_scale(graph, pixels, weight, bias):
    """A quantised bias counts in steps of its input's scale times that of the weights."""
    if any(getattr(maker, "op_type", "") != "DequantizeLinear" for maker in (pixels, weight, bias)):
        return  # a layer that stays float
    old = graph.constants[bias.input[1]]
    new = (graph.constants[pixels.input[1]] * graph.constants[weight.input[1]]).astype(np.float32)
    if not np.allclose(old, new, rtol=1e-4):
        graph.constants[bias.input[0]] = np.rint(graph.constants[bias.input[0]] * old.astype(np.float64) / new).astype(np.int32)
        graph.constants[bias.input[1]] = new
