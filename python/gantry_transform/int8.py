"""Static int8 (QDQ) by onnxruntime.quantization, and what it leaves to be done: which layers stay float, weights rounded by what their
layer reads, the picture read as the bytes that it is, one scale for what is joined.

What the network computes stays, up to the rounding of weights and activations.
"""

import copy
import dataclasses
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .cells import picture_readers, read_picture_by_cells
from .ends import WEIGHED, ends_and_behind, named
from .fit import LARGEST, fit_weights
from .graph import Graph
from .refusal import Refusal
from .scales import share_scales

FIT_PICTURES = 40  # that weights are rounded by
SENSITIVITY_PICTURES = 4
HISTOGRAM_PICTURES = 4  # whose activations are held at once
OPERATORS = [
    "Conv", "ConvTranspose", "MatMul", "Gemm", "Relu", "Clip", "LeakyRelu", "Sigmoid", "Mul", "Add", "MaxPool", "Concat", "Resize",
    "GlobalAveragePool",
]
ACTIVATIONS = ["Relu", "Clip", "LeakyRelu", "Sigmoid", "Mul"]
LEAST_OPSET = 13  # from here on a scale may be one for each channel


@dataclasses.dataclass
class Settings:
    method: str = "minmax"  # or percentile, entropy
    percentile: float = 99.99
    per_channel: bool = True
    weight_bits: int = 7  # 8 saturate on x64 without VNNI
    exclude: list = dataclasses.field(default_factory=list)  # names of nodes that stay float
    sensitivity: float = 0.1  # a layer that alone moves what the network ends in by more than this part of it stays float; 0: not measured
    fit: bool = True  # weights rounded so that results stay


def quantise(source, target, pictures, settings=Settings(), say=lambda text: None):
    """The float32 file `source`, quantised into `target`: uint8 activations, with zero point 0 after ReLU, int8 weights, scales from
    `pictures`. The last layers on every way to an output and what is behind them stay float: box offsets are decoded by exp and scaled by
    up to 32 px, a step of a class score moves it visibly; together they are a small part of the work."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory() as tmp:
        model = named(onnx.load(source))
        if opset_of(model) < LEAST_OPSET:
            say(f"opset {opset_of(model)} becomes {LEAST_OPSET}")
            model = onnx.version_converter.convert_version(model, LEAST_OPSET)
        onnx.save(model, f"{tmp}/source.onnx")
        say("preparing the graph")
        quant_pre_process(f"{tmp}/source.onnx", f"{tmp}/prepared.onnx", skip_symbolic_shape=True)
        prepared = named(onnx.load(f"{tmp}/prepared.onnx"))
        onnx.save(prepared, f"{tmp}/prepared.onnx")
        unknown = set(settings.exclude) - {n.name for n in prepared.graph.node}
        if unknown:
            raise Refusal(
                f"there is no node {', '.join(sorted(unknown))} to leave out",
                "Layers that can be left out: " + ", ".join(n.name for n in layers(prepared)) + ".",
            )
        if not layers(prepared):
            raise Refusal("there is no layer with constant weights to quantise", "Export the model with its weights as constants.")
        ends, behind = ends_and_behind(prepared)
        readers = picture_readers(prepared)
        kept = [*readers, *ends, *behind]
        say(f"calibrating on {len(pictures.values)} pictures ({settings.method})")
        ranges = calibrated(f"{tmp}/prepared.onnx", prepared, pictures.first(), settings, f"{tmp}/augmented.onnx")
        sensitive = {}
        if settings.sensitivity > 0:
            sensitive = sensitivity(prepared, ranges, ends, [*kept, *settings.exclude], pictures, settings, say)
        apart = [*settings.exclude, *(name for name, error in sensitive.items() if error > settings.sensitivity)]
        kept += [*apart, *activations_behind(prepared, apart)]
        say("quantising")
        graph = Graph(quantised(prepared, ranges, settings, exclude=kept))
        if settings.fit:
            say("rounding weights by what their layers read")
            fit_weights(graph, prepared, pictures.first(FIT_PICTURES), LARGEST if settings.weight_bits == 7 else 127)
    by_cells = read_picture_by_cells(graph, {name: reader for name, reader in readers.items() if name not in settings.exclude})
    share_scales(graph)
    finished = graph.finished()
    onnx.save(finished, target)
    names = {n.name for n in layers(prepared)}
    left = [name for name in dict.fromkeys(kept) if name in names and name not in readers]
    worst = sorted(sensitive.items(), key=lambda each: -each[1])[:10]
    return {
        "layers": len(names), "float32Layers": left, "excluded": [name for name in left if name not in ends],
        "readByCells": by_cells, "sensitivity": [{"layer": name, "error": error} for name, error in worst],
        "pictures": len(pictures.values),
    }


def opset_of(model):
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)


def layers(model):
    """The nodes with constant weights."""
    constants = {i.name for i in model.graph.initializer}
    return [n for n in model.graph.node if n.op_type in WEIGHED and any(name in constants for name in n.input[1:2])]


def calibrated(path, model, pictures, settings, scratch):
    """Ranges of all activations."""
    from onnxruntime.quantization.calibrate import CalibrationMethod, TensorData, TensorsData, create_calibrator

    method = {"minmax": CalibrationMethod.MinMax, "percentile": CalibrationMethod.Percentile, "entropy": CalibrationMethod.Entropy}[settings.method]
    extra = {"moving_average": True} if settings.method == "minmax" else {}
    if settings.method == "percentile":
        extra["percentile"] = settings.percentile
    calibrator = create_calibrator(path, OPERATORS, scratch, method, extra_options=extra, providers=["CPUExecutionProvider"])
    if settings.method == "minmax":
        calibrator.collect_data(pictures)
    else:
        # A histogram is added to; what it is made from would not fit into memory for all pictures.
        while (some := take(pictures, HISTOGRAM_PICTURES)) is not None:
            calibrator.collect_data(some)
    found = calibrator.compute_data()
    never_negative = {
        o for n in model.graph.node for o in n.output
        if n.op_type in ("Relu", "Sigmoid") or (n.op_type == "Clip" and lowest_of(n, model) >= 0)
    }
    ranges = {}
    for name, data in found.items():
        low, high = data.range_value
        if name in never_negative:
            low = np.zeros_like(low)
        ranges[name] = TensorData(lowest=np.asarray(low, np.float32), highest=np.asarray(high, np.float32))
    return TensorsData(CalibrationMethod.MinMax, ranges)


def activations_behind(model, apart):
    """Names of activations that read nothing but what nodes in `apart` give, and so stay float with them. Quantised, they would put what those end in on 256 steps all
    the same: of the wide range before a SiLU each step is a large part of what is behind it."""
    constants = {i.name for i in model.graph.initializer}
    given = {o for n in model.graph.node if n.name in set(apart) for o in n.output}
    found = []
    for n in model.graph.node:
        if n.op_type in ACTIVATIONS and all(i in given for i in n.input if i and i not in constants):
            found.append(n.name)
            given.update(n.output)
    return found


class Some:
    def __init__(self, feeds):
        self.feeds = iter(feeds)

    def get_next(self):
        return next(self.feeds, None)


def take(pictures, count):
    feeds = []
    while len(feeds) < count and (feed := pictures.get_next()) is not None:
        feeds.append(feed)
    return Some(feeds) if feeds else None


def lowest_of(clip, model):
    for a in clip.attribute:
        if a.name == "min":
            return a.f
    constant = next((i for i in model.graph.initializer if len(clip.input) > 1 and i.name == clip.input[1]), None)
    return float(numpy_helper.to_array(constant)) if constant is not None else -np.inf


def quantised(model, ranges, settings, exclude=(), only=None):
    """The quantiser's own work. `only`: names of the nodes that it quantises."""
    from onnxruntime.quantization import QuantType
    from onnxruntime.quantization.qdq_quantizer import QDQQuantizer

    quantiser = QDQQuantizer(
        copy.deepcopy(model), settings.per_channel, settings.weight_bits == 7, QuantType.QInt8, QuantType.QUInt8, ranges,
        list(only or []), list(exclude), OPERATORS, {},
    )
    quantiser.quantize_model()
    quantiser.model.topological_sort()
    return quantiser.model.model


def sensitivity(model, ranges, ends, kept, pictures, settings, say):
    """{layer: by which part of it, as a root mean square, what the network ends in moves when that layer alone is int8}; the mean over the
    ends, most sensitive first."""
    outputs = [n.output[0] for n in model.graph.node if n.name in ends]
    feeds, reader = [], pictures.first(SENSITIVITY_PICTURES)
    while (feed := reader.get_next()) is not None:
        feeds.append(feed)
    wanted = answers(model, outputs, feeds)
    names = [n.name for n in layers(model) if n.name not in kept]
    found = {}
    for at, name in enumerate(names):
        if at % 10 == 0:
            say(f"measuring layer {at + 1} of {len(names)}")
        got = answers(quantised(model, ranges, settings, only=[name]), outputs, feeds)
        found[name] = float(np.mean([difference(a, b) for a, b in zip(wanted, got)]))
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def difference(wanted, got):
    deviation = np.std(wanted)
    return float(np.sqrt(np.mean(np.square(wanted - got))) / deviation) if deviation > 0 else 0.0


def answers(model, outputs, feeds):
    """Of each output, all pictures joined."""
    import onnxruntime as ort

    opened = onnx.ModelProto()
    opened.CopyFrom(model)
    known = {o.name for o in opened.graph.output}
    opened.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in outputs if name not in known)
    session = ort.InferenceSession(opened.SerializeToString(), providers=["CPUExecutionProvider"])
    runs = [session.run(outputs, feed) for feed in feeds]
    return [np.concatenate([np.ravel(run[at]) for run in runs]).astype(np.float64) for at in range(len(outputs))]
