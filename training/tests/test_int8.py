"""The int8 graph: its rewritings against what they replace."""

from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F

from ppe.export import VIDEO, write_graph
from ppe.arithmetic import saturates
from ppe.int8 import quantise  # makes gantry_transform known
from gantry_transform.cells import CELL, by_cells, rounded, through_average
from gantry_transform.fit import LARGEST, rounded_by, windows
from gantry_transform.graph import Graph
from gantry_transform.int8 import activations_behind
from ppe.model import Deployed, fuse

from .test_export import MODELS, noise, plain, published, random_network, session

FIRST = ("/stem/stem.0/stem.0.0/Conv", "/context/stem/Conv")  # the convolutions that read the picture, one of either path


def cells_of(pixels):
    """[N, C, H, W] -> [N, CELL * C, H, W / CELL], as the bytes of a row lie."""
    n, c, h, w = pixels.shape
    return pixels.permute(0, 2, 3, 1).reshape(n, h, w // CELL, CELL * c).permute(0, 3, 1, 2)


def pixels_of(cells, channels):
    n, _, h, _ = cells.shape
    return cells.permute(0, 2, 3, 1).reshape(n, h, -1, channels).permute(0, 3, 1, 2)


def test_activations_of_layers_that_stay_float_stay_float_with_them():
    node = onnx.helper.make_node
    nodes = [
        node("Conv", ["x", "w"], ["a"], name="first"),
        node("Sigmoid", ["a"], ["b"], name="first/sigmoid"),
        node("Mul", ["a", "b"], ["c"], name="first/silu"),
        node("Conv", ["c", "w"], ["d"], name="second"),
        node("Relu", ["d"], ["e"], name="second/relu"),
        node("Mul", ["c", "e"], ["y"], name="of both"),
    ]
    weight = onnx.numpy_helper.from_array(np.ones((1, 1, 1, 1), np.float32), "w")
    border = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in ("x", "y")]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", border[:1], border[1:], [weight]))
    assert activations_behind(model, ["first"]) == ["first/sigmoid", "first/silu"]
    assert activations_behind(model, ["second"]) == ["second/relu"]
    assert activations_behind(model, ["first", "second"]) == ["first/sigmoid", "first/silu", "second/relu", "of both"]
    assert activations_behind(model, []) == []


class NoiseStore:
    def __init__(self, count):
        self.samples, self.pictures = [(None, SimpleNamespace(set="noise"))] * count, noise(count, 64, 64)

    def __getitem__(self, i):
        return None, self.pictures[i]


@pytest.mark.parametrize("average", [False, True])
def test_a_convolution_over_cells_is_the_one_over_pixels(average):
    rng = np.random.default_rng(0)
    images, bias = torch.from_numpy(rng.normal(size=(2, 3, 32, 48))), torch.from_numpy(rng.normal(size=5))
    weight = rng.integers(-508, 509, (5, 3, 3, 3)).astype(float)
    want = F.conv2d(images, torch.from_numpy(weight), bias, 2, 1)
    stride, pad = 2, 1
    if average:  # four equal pixels for one
        images, weight, stride, pad = images.repeat_interleave(2, 2).repeat_interleave(2, 3), through_average(weight), 4, 2
    cells = torch.from_numpy(by_cells(weight, stride, pad))
    got = F.conv2d(F.pad(cells_of(images), (1, 0, pad, pad)), cells, bias.tile(CELL // stride), (stride, 1))
    torch.testing.assert_close(pixels_of(got, 5), want)


def test_a_weight_is_spread_evenly_over_the_pixels_of_an_average():
    four = through_average(np.array([-508, -3, 0, 5, 508.0]).reshape(5, 1, 1, 1)).reshape(5, 4)
    assert four.sum(1).tolist() == [-508, -3, 0, 5, 508] and np.ptp(four, axis=1).max() <= 1 and np.abs(four).max() == 127


def test_rounding_keeps_what_an_even_picture_gives():
    steps = np.random.default_rng(0).uniform(-127, 127, (16, 3, 3, 3))
    whole = rounded(steps)
    assert (whole == np.rint(whole)).all() and np.abs(whole - steps).max() < 1
    assert np.abs((whole - steps).sum((2, 3))).max() <= 0.5 < np.abs((np.rint(steps) - steps).sum((2, 3))).max()


def test_weights_are_rounded_so_that_results_stay():
    rng = np.random.default_rng(0)
    inputs = np.maximum(rng.normal(size=(4000, 12)) @ rng.normal(size=(12, 72)) + 1, 0)  # as alike as those of a network are
    weight = rng.normal(size=(8, 72))
    scale = np.abs(weight).max(1, keepdims=True) / LARGEST
    nearest, fitted = np.rint(weight / scale), rounded_by(weight, scale, inputs.T @ inputs / len(inputs))
    error = lambda steps: np.square(inputs @ (steps * scale - weight).T).mean()
    assert error(fitted) < 0.25 * error(nearest)
    assert (fitted == np.rint(fitted)).all() and np.abs(fitted).max() <= LARGEST


@pytest.mark.parametrize("settings", [{}, {"pads": [1, 1, 1, 1], "strides": [2, 2]}, {"pads": [1, 1, 1, 1], "group": 4}])
def test_windows_are_what_a_convolution_reads(settings):
    rng, groups = np.random.default_rng(0), settings.get("group", 1)
    picture, weight = rng.normal(size=(4, 9, 10)), rng.normal(size=(8, 4 // groups, 3, 3))
    options = {"padding": settings.get("pads", [0])[0], "stride": settings.get("strides", [1])[0], "groups": groups}
    results = F.conv2d(torch.from_numpy(picture)[None], torch.from_numpy(weight), **options)[0].reshape(groups, 8 // groups, -1)
    read = windows(picture, (3, 3), settings, rng)
    for group in range(groups):
        got = read[group] @ weight.reshape(groups, 8 // groups, -1)[group].T
        distance = np.abs(got[:, None] - results[group].numpy().T[None]).max(2)
        assert distance.min(1).max() < 1e-9 and len(set(distance.argmin(1))) > 9


def test_a_channel_without_input_is_rounded_to_the_nearest():
    products = np.zeros((3, 3))
    assert rounded_by(np.array([[0.26, -0.24, 0.5]]), np.array([[0.1]]), products).tolist() == [[3, -2, 5]]


def test_this_processor_saturates_or_does_not():
    flags = next((line for line in open("/proc/cpuinfo") if line.startswith("flags")), "").split()
    assert saturates() == ("avx2" in flags and not {"avx512_vnni", "avx_vnni"} & set(flags))


def test_a_convolution_that_needs_more_than_two_cells_is_refused():
    with pytest.raises(ValueError, match="7 pixels, stride 2 and padding 3 does not fit"):
        by_cells(np.zeros((1, 3, 7, 7), np.float32), 2, 3)
    with pytest.raises(ValueError, match="stride 3"):
        by_cells(np.zeros((1, 3, 3, 3), np.float32), 3, 1)


def test_a_quantised_network_stays_near_for_any_batch_and_size(tmp_path):
    model = random_network()
    write_graph(Deployed(fuse(model)), tmp_path / "m.onnx", (64, 64))
    quantise(tmp_path / "m.onnx", tmp_path / "int8.onnx", NoiseStore(8), (64, 64))
    onnx.checker.check_model(onnx.load(tmp_path / "int8.onnx"), full_check=True)
    s = session(tmp_path / "int8.onnx")
    for shape in ((1, 64, 64), (3, 96, 128)):
        pixels = noise(*shape)
        got, want = s.run(None, {"images": pixels})[0], plain(model, pixels)
        assert got.shape == want.shape
        assert np.abs(got[:, 4:] - want[:, 4:]).mean() < 0.01
        assert np.corrcoef(got[:, 4:].ravel(), want[:, 4:].ravel())[0, 1] > 0.95


def test_a_channel_that_training_emptied_keeps_its_bias(tmp_path):
    model = random_network()
    stem = model.backbone.context.stem
    with torch.no_grad():
        stem.weight[3], stem.bias[3] = 1e-9, 5
    write_graph(Deployed(fuse(model)), tmp_path / "m.onnx", (64, 64))
    quantise(tmp_path / "m.onnx", tmp_path / "int8.onnx", NoiseStore(8), (64, 64))
    constants = Graph(onnx.load(tmp_path / "int8.onnx")).constants
    steps = [name for name in constants if name.endswith("bias_int") and "context" in name]
    assert len(steps) == 1
    bias = constants[steps[0]] * constants[steps[0].replace("bias_int", "scale")]
    assert bias.reshape(-1, len(stem.bias))[:, 3] == pytest.approx(5, abs=1e-4)


@published
@pytest.mark.parametrize("name", ["ppe_detect_int8", VIDEO])
class TestPublished:
    def graph(self, name):
        return Graph(onnx.load(MODELS / name / "1" / "model.onnx"))

    def test_only_the_output_convolutions_are_float(self, name):
        graph = self.graph(name)
        floats = [
            n.name for n in graph.nodes if n.op_type == "Conv" and getattr(graph.maker(n.input[1]), "op_type", "") != "DequantizeLinear"
        ]
        assert len(floats) == 6 and all(n.endswith(("/box/Conv", "/cls/Conv")) for n in floats)
        assert sum(n.name.endswith(FIRST) for n in graph.nodes) == 2

    def test_weights_have_seven_bits(self, name):
        graph = self.graph(name)
        steps = [graph.constants[n.input[0]] for n in graph.nodes if n.op_type == "DequantizeLinear" and n.input[0] in graph.constants]
        weights = [s for s in steps if s.dtype == np.int8]
        assert len(weights) > 70 and max(np.abs(w.astype(int)).max() for w in weights) == LARGEST

    def test_concatenations_copy_bytes(self, name):
        graph = self.graph(name)
        joined = [n for n in graph.nodes if n.op_type == "Concat" and graph.quantiser(n.output[0])]
        assert len(joined) == 14
        for n in joined:
            scales = {float(graph.constants[graph.maker(t).input[1]]) for t in n.input}
            assert scales == {float(graph.constants[graph.quantiser(n.output[0]).input[1]])}
