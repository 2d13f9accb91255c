"""Exported files against the network they come from, and the published models against each other."""

from pathlib import Path

import numpy as np
import pytest
import torch

from ppe.export import VIDEO, Half, VARIANTS, write_folder, write_graph
from ppe.model import CLASSES, Deployed, Detector, decode, fuse, points
from ppe.weights import load_init, mixed, restore_statistics, save_compact

MODELS = Path(__file__).parents[2] / "models"
DATA = Path(__file__).parents[3] / "shared" / "datasets"
GAP = 0.02  # the most mAP50 that int8 may lose


def random_network(seed=0):
    torch.manual_seed(seed)
    model = Detector()
    for head in model.heads:
        torch.nn.init.normal_(head.box.bias, 0, 0.5), torch.nn.init.normal_(head.cls.bias, -3, 0.5)
    for m in model.modules():  # batch norms that do something
        if isinstance(m, torch.nn.BatchNorm2d):
            m.running_mean.normal_(0, 0.1), m.running_var.uniform_(0.5, 2)
            torch.nn.init.uniform_(m.weight, 0.5, 1.5), torch.nn.init.normal_(m.bias, 0, 0.1)
    return model.eval()


def noise(n, h, w):
    return np.random.default_rng(1).integers(0, 255, (n, h, w, 3), np.uint8)


def plain(model, pixels):
    """The training-time forward, decoded: what the exported graph must reproduce."""
    with torch.inference_mode():
        raw, logits = model(torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255)
        boxes = decode(raw, *points(*pixels.shape[1:3]))
        return torch.cat([boxes, logits.sigmoid()], 2).transpose(1, 2).numpy()


def session(path):
    import onnxruntime as ort

    return ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def test_weights_read_back_from_a_file_train_on_from_where_they_were(tmp_path):
    model = random_network()
    write_graph(Deployed(fuse(model)), tmp_path / "m.onnx", (64, 64))
    back = Detector()
    load_init(back, tmp_path / "m.onnx")
    images = torch.from_numpy(noise(6, 96, 96)).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        as_loaded = back.eval()(images)[1]
        restore_statistics(back, images)
        assert torch.allclose(back.eval()(images)[1], as_loaded, atol=1e-3)
        assert torch.allclose(back.train()(images)[1], as_loaded, atol=1e-2)  # batch statistics of the same pictures


def test_the_network_is_small_and_all_activations_are_relu():
    model = Detector()
    assert sum(p.numel() for p in model.parameters()) <= 4e6
    kinds = {type(m) for m in model.modules()}
    assert torch.nn.ReLU in kinds and not kinds & {torch.nn.SiLU, torch.nn.GELU, torch.nn.Sigmoid}


def test_the_exported_graph_equals_the_network_for_any_batch_and_size(tmp_path):
    model = random_network()
    write_graph(Deployed(fuse(model)), tmp_path / "m.onnx", (64, 64))
    s = session(tmp_path / "m.onnx")
    for shape in ((1, 64, 64), (3, 96, 128)):
        pixels = noise(*shape)
        got, want = s.run(None, {"images": pixels})[0], plain(model, pixels)
        assert got.shape == want.shape == (shape[0], 4 + len(CLASSES), want.shape[2])
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-3)


def test_the_float16_graph_stays_near(tmp_path):
    model = random_network()
    write_graph(Half(fuse(model)), tmp_path / "m.onnx", (64, 64))
    pixels = noise(1, 64, 64)
    got, want = session(tmp_path / "m.onnx").run(None, {"images": pixels})[0], plain(model, pixels)
    np.testing.assert_allclose(got[:, 4:], want[:, 4:], atol=0.02)


@pytest.mark.parametrize("kind", ["npz", "onnx"])
def test_weights_come_back(tmp_path, kind):
    model, again = random_network(), Detector().eval()
    path = tmp_path / f"m.{kind}"
    if kind == "npz":
        save_compact(model, path)
    else:
        write_graph(Deployed(fuse(model)), path, (64, 64))
    load_init(again, path)
    pixels = noise(1, 64, 64)
    np.testing.assert_allclose(plain(again, pixels)[:, 4:], plain(model, pixels)[:, 4:], atol=2e-2)


def test_the_model_folder_says_the_shapes(tmp_path):
    write_folder(tmp_path, "ppe_detect", (640, 384))
    text = (tmp_path / "ppe_detect" / "config.pbtxt").read_text()
    assert "dims: [ 384, 640, 3 ]" in text and "dims: [ 11, 5040 ]" in text
    assert (tmp_path / "ppe_detect" / "labels.txt").read_text().split() == list(CLASSES)


published = pytest.mark.skipif(
    not (MODELS / "ppe_detect_int8").is_dir(), reason="no published models beside this recipe"
)


@published
def test_the_published_files_fit_and_carry_their_names():
    import onnx

    total = 0
    for name in (*VARIANTS, VIDEO):
        path = MODELS / name / "1" / "model.onnx"
        total += path.stat().st_size
        props = {p.key: p.value for p in onnx.load(path).metadata_props}
        assert all(c in props["names"] for c in CLASSES)
    assert total <= 20e6


@published
def test_the_published_fp32_file_equals_the_torch_network_read_back_from_it():
    model = Detector().eval()
    path = MODELS / "ppe_detect" / "1" / "model.onnx"
    load_init(model, path)
    pixels = noise(1, 128, 96)
    np.testing.assert_allclose(
        session(path).run(None, {"images": pixels})[0], plain(model, pixels), rtol=5e-3, atol=5e-3
    )


@published
@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/datasets is absent: the int8 gap cannot be measured")
def test_int8_is_within_its_gap_of_fp32_on_every_fourth_valid_picture(tmp_path):
    from ppe.cache import load
    from ppe.evaluate import detect, onnx_runner, report

    store = load(DATA, tmp_path, "valid")
    store.samples = store.samples[::4]
    score = {}
    for name in ("ppe_detect", "ppe_detect_int8"):
        run = onnx_runner(MODELS / name / "1" / "model.onnx", 2)
        score[name] = report(store, detect(run, store, (416, 416)), False)["mean"]["ap50"]
    assert score["ppe_detect"] - score["ppe_detect_int8"] <= GAP, score


def test_weights_of_runs_are_mixed_by_their_shares(tmp_path):
    states = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        states.append(Detector().state_dict())
        torch.save({"average": states[-1], "step": seed}, tmp_path / f"{seed}.pt")
    parts = [(tmp_path / "1.pt", 0.25), (tmp_path / "2.pt", 0.75)]
    torch.save(mixed(parts), tmp_path / "mixed.pt")
    model = Detector()
    load_init(model, tmp_path / "mixed.pt")
    for name, value in model.state_dict().items():
        if value.is_floating_point():
            torch.testing.assert_close(value, 0.25 * states[0][name] + 0.75 * states[1][name])
    with pytest.raises(SystemExit, match="1.25 in all"):
        mixed([parts[0], (tmp_path / "2.pt", 1.0)])


def test_parts_of_the_network_have_shares_of_their_own(tmp_path):
    paths = [str(tmp_path / f"{seed}.pt") for seed in range(2)]
    for seed, path in enumerate(paths):
        torch.manual_seed(seed)
        torch.save({"average": Detector().state_dict()}, path)
    one, two = (torch.load(path, weights_only=True)["average"] for path in paths)
    half = [(paths[0], 0.5), (paths[1], 0.5)]
    mean = mixed(half, [("heads.0", [(paths[1], 1.0)])])["average"]
    assert torch.equal(mean["heads.0.cls.weight"], two["heads.0.cls.weight"])
    assert torch.allclose(mean["heads.1.cls.weight"], (one["heads.1.cls.weight"] + two["heads.1.cls.weight"]) / 2)
    with pytest.raises(SystemExit, match="no parameter begins with tails"):
        mixed(half, [("tails", half)])
