"""Trains the colour of helmets on crops, writes it as ONNX, and says how often it is right on frames it has not seen.

    python -m helmet_colour.train --clips ../pipelines/demo/clips --photos DATASETS/hardhat-workers --out MODEL.onnx

Needs numpy, pillow, onnx and ffmpeg. Photographs have no colours in their labels: helmets of one clear colour are told by their hue, and
painted in the others. The clips of the simulator have the truth (colours.json is from their scenarios); one of them is held out.
"""

import argparse
import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

COLOURS = ["white", "yellow", "red", "blue", "other"]
SIDE = 24
BLOCK = 6
HIDDEN = 16
HELD_OUT = "yard"
# Degrees of hue that have a name; what lies between two of them is not trained on.
HUES = {"yellow": (40, 62), "red": (-14, 8), "blue": (200, 240), "other": (78, 165)}
ORANGE = (16, 30)


def cut(picture: Image.Image, box: tuple[float, float, float, float]) -> np.ndarray:
    """A box as the crop step of Gantry gives it, clipped to the picture."""
    x1, y1, x2, y2 = box
    clipped = (max(0.0, x1), max(0.0, y1), min(picture.width, x2), min(picture.height, y2))
    return np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=clipped))


def jittered(box, random: np.random.Generator):
    """A box as a detector would give it: up to a tenth of its size beside the truth."""
    x1, y1, x2, y2 = box
    width, height = x2 - x1, y2 - y1
    dx1, dx2 = random.uniform(-0.1, 0.1, 2) * width
    dy1, dy2 = random.uniform(-0.1, 0.1, 2) * height
    return (x1 + dx1, y1 + dy1, x2 + dx2, y2 + dy2)


def frames(path: Path, stride: int, width: int, height: int):
    """Every `stride`-th frame of a clip, scaled as the detector sees it."""
    shell = ["ffmpeg", "-v", "error", "-i", str(path), "-vf", f"select=not(mod(n\\,{stride})),scale={width}:{height}"]
    raw = subprocess.run([*shell, "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], capture_output=True, check=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, height, width, 3)


def clip_crops(clips: Path, name: str, colours: dict, random: np.random.Generator, repeats: int, width: int, height: int):
    """Crops of worn helmets that are mostly visible, with their colours."""
    truth = json.loads((clips / f"{name}.truth.json").read_text())
    of = colours[truth["scenario"]]
    scale = width / truth["widthPx"]
    crops, labels = [], []
    pictures = frames(clips / f"{name}.mp4", truth["frameStride"], width, height)
    for seen, picture in zip(truth["frames"], pictures):
        image = Image.fromarray(picture)
        for thing in seen["objects"]:
            who = thing["id"].split("/")[0]
            if thing["class"] != "helmet" or thing["visible"] < 0.6 or who not in of:
                continue
            box = [side * scale for side in thing["box"]]
            colour = of[who] if of[who] in COLOURS else "other"
            for _ in range(repeats):
                crops.append(cut(image, jittered(box, random) if repeats > 1 else box))
                labels.append(COLOURS.index(colour))
    return crops, labels


def painted(crop: np.ndarray, random: np.random.Generator):
    """A helmet of one clear colour, as it is and in each other colour: pairs of crop and label; none where no colour is clear."""
    hsv = np.asarray(Image.fromarray(crop).convert("HSV")).astype(float)
    hue, saturation, value = hsv[..., 0] * 360 / 255, hsv[..., 1] / 255, hsv[..., 2] / 255
    strong = (saturation > 0.4) & (value > 0.3)
    top = strong[: SIDE * 6 // 10, SIDE // 6 : -SIDE // 6]
    if top.mean() < 0.3:
        return []
    middle = np.median(hue[: SIDE * 6 // 10, SIDE // 6 : -SIDE // 6][top])
    near = strong & (np.abs((hue - middle + 180) % 360 - 180) < 14)
    if near[: SIDE * 6 // 10, SIDE // 6 : -SIDE // 6].mean() < 0.3:
        return []
    pairs = []
    for label, colour in enumerate(COLOURS):
        for _ in range(2):
            new = hsv.copy()
            if colour == "white":
                new[near, 1] = saturation[near] * random.uniform(0, 0.15) * 255
                new[near, 2] = np.clip(value[near] * random.uniform(1.0, 1.4), 0, 1) * 255
            else:
                low, high = ORANGE if colour == "other" and random.random() < 0.5 else HUES[colour]
                new[near, 0] = ((hue[near] - middle) * 0.5 + random.uniform(low, high)) % 360 * 255 / 360
                if colour == "blue":
                    new[near, 2] = value[near] * random.uniform(0.5, 1) * 255
            pairs.append((np.asarray(Image.fromarray(new.astype(np.uint8), "HSV").convert("RGB")), label))
    return pairs


def photo_crops(photos: Path, split: str, most: int, random: np.random.Generator):
    crops, labels = [], []
    for path in sorted((photos / split / "labels").glob("*.txt"))[:most]:
        image = Image.open(next((photos / split / "images").glob(f"{path.stem}.*"))).convert("RGB")
        for line in path.read_text().splitlines():
            kind, x, y, w, h = (float(part) for part in line.split()[:5])
            w, h, x, y = w * image.width, h * image.height, x * image.width, y * image.height
            if kind != 0 or min(w, h) < 12:
                continue
            for crop, label in painted(cut(image, jittered((x - w / 2, y - h / 2, x + w / 2, y + h / 2), random)), random):
                crops.append(crop)
                labels.append(label)
    return crops, labels


def lit(crops: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Other light, white balance and noise."""
    count = len(crops)
    gain = random.uniform(0.6, 1.25, (count, 1, 1, 1)) * random.uniform(0.93, 1.07, (count, 1, 1, 3))
    shown = np.clip(crops * gain, 0, 1) ** random.uniform(0.8, 1.25, (count, 1, 1, 1))
    return np.clip(shown + random.normal(0, 0.02, crops.shape), 0, 1)


class Net:
    """Two layers for each pixel, the mean of each block of pixels, one layer over all blocks."""

    def __init__(self, random: np.random.Generator):
        blocks = (SIDE // BLOCK) ** 2
        shapes = [(3, HIDDEN), (HIDDEN, HIDDEN), (blocks * HIDDEN, len(COLOURS))]
        self.weights = [random.normal(0, np.sqrt(2 / a), (a, b)).astype(np.float32) for a, b in shapes]
        self.biases = [np.zeros(b, np.float32) for _, b in shapes]

    def forward(self, x: np.ndarray):
        n = len(x)
        a = np.maximum(x.reshape(-1, 3) @ self.weights[0] + self.biases[0], 0)
        b = np.maximum(a @ self.weights[1] + self.biases[1], 0)
        side = SIDE // BLOCK
        pooled = b.reshape(n, side, BLOCK, side, BLOCK, HIDDEN).mean(axis=(2, 4)).reshape(n, -1)
        logits = pooled @ self.weights[2] + self.biases[2]
        return a, b, pooled, logits

    def gradients(self, x: np.ndarray, labels: np.ndarray):
        n = len(x)
        a, b, pooled, logits = self.forward(x)
        shares = np.exp(logits - logits.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        wrong = shares.copy()
        wrong[np.arange(n), labels] -= 1
        wrong /= n
        side = SIDE // BLOCK
        back = (wrong @ self.weights[2].T).reshape(n, side, 1, side, 1, HIDDEN) / BLOCK**2
        back = np.broadcast_to(back, (n, side, BLOCK, side, BLOCK, HIDDEN)).reshape(-1, HIDDEN) * (b > 0)
        first = (back @ self.weights[1].T) * (a > 0)
        of_weights = [x.reshape(-1, 3).T @ first, a.T @ back, pooled.T @ wrong]
        of_biases = [first.sum(0), back.sum(0), wrong.sum(0)]
        return of_weights, of_biases


def train(net: Net, crops: np.ndarray, labels: np.ndarray, epochs: int, random: np.random.Generator) -> None:
    """Adam, with a step that ends at zero; every colour as often as any other."""
    values = [*net.weights, *net.biases]
    first = [np.zeros_like(v) for v in values]
    second = [np.zeros_like(v) for v in values]
    chances = 1 / np.bincount(labels, minlength=len(COLOURS))[labels]
    chances /= chances.sum()
    batch = 128
    steps = epochs * len(labels) // batch
    for step in range(1, steps + 1):
        picked = random.choice(len(labels), batch, p=chances)
        shown = lit(crops[picked].astype(np.float32) / 255, random).astype(np.float32)
        of_weights, of_biases = net.gradients(shown, labels[picked])
        rate = 0.003 * 0.5 * (1 + np.cos(np.pi * step / steps))
        for at, gradient in enumerate([*of_weights, *of_biases]):
            first[at] = 0.9 * first[at] + 0.1 * gradient
            second[at] = 0.999 * second[at] + 0.001 * gradient**2
            values[at] -= rate * (first[at] / (1 - 0.9**step)) / (np.sqrt(second[at] / (1 - 0.999**step)) + 1e-8)


def accuracy(net: Net, crops: np.ndarray, labels: np.ndarray) -> tuple[float, dict]:
    best = net.forward(crops.astype(np.float32) / 255)[3].argmax(1)
    each = {name: f"{(best[labels == i] == i).mean():.3f} of {(labels == i).sum()}" for i, name in enumerate(COLOURS) if (labels == i).any()}
    return float((best == labels).mean()), each


def export(net: Net, path: Path) -> None:
    """uint8 [N, 24, 24, 3] RGB in, shares of the colours [N, 5] out."""
    side = SIDE // BLOCK
    # Convolutions of one pixel; the last layer reads blocks channel by channel.
    last = net.weights[2].reshape(side, side, HIDDEN, len(COLOURS)).transpose(2, 0, 1, 3).reshape(-1, len(COLOURS))
    constants = {
        "w0": (net.weights[0].T / 255).reshape(HIDDEN, 3, 1, 1),
        "b0": net.biases[0],
        "w1": net.weights[1].T.reshape(HIDDEN, HIDDEN, 1, 1),
        "b1": net.biases[1],
        "w2": last,
        "b2": net.biases[2],
    }
    nodes = [
        helper.make_node("Cast", ["crops"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Transpose", ["floats"], ["planes"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["planes", "w0", "b0"], ["c0"]),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("Conv", ["r0", "w1", "b1"], ["c1"]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("AveragePool", ["r1"], ["blocks"], kernel_shape=[BLOCK, BLOCK], strides=[BLOCK, BLOCK]),
        helper.make_node("Flatten", ["blocks"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w2", "b2"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["colour"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "helmet_colour",
        [helper.make_tensor_value_info("crops", TensorProto.UINT8, ["batch", SIDE, SIDE, 3])],
        [helper.make_tensor_value_info("colour", TensorProto.FLOAT, ["batch", len(COLOURS)])],
        [numpy_helper.from_array(np.ascontiguousarray(value, np.float32), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=Path, required=True)
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--most-photos", type=int, default=300)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    colours = json.loads((Path(__file__).parent / "colours.json").read_text())
    names = [path.name.removesuffix(".truth.json") for path in sorted(options.clips.glob("*.truth.json"))]
    size = (800, 450)
    crops, labels = photo_crops(options.photos, "train", options.most_photos, random)
    print(f"{len(labels)} crops of photographs, painted")
    for name in names:
        if name == HELD_OUT:
            continue
        of_clip, labels_of_clip = clip_crops(options.clips, name, colours, random, 3, *size)
        crops += of_clip
        labels += labels_of_clip
    crops, labels = np.stack(crops), np.array(labels)
    print(f"{len(labels)} crops to train on: {dict(zip(COLOURS, np.bincount(labels, minlength=len(COLOURS)).tolist()))}")
    net = Net(random)
    train(net, crops, labels, options.epochs, random)
    tests = {
        f"clip {HELD_OUT}, held out": clip_crops(options.clips, HELD_OUT, colours, random, 1, *size),
        "photographs of the valid split, painted": photo_crops(options.photos, "valid", 200, random),
    }
    for title, (test_crops, test_labels) in tests.items():
        share, each = accuracy(net, np.stack(test_crops), np.array(test_labels))
        print(f"{title}: {share:.3f} of {len(test_labels)} right; {each}")
    export(net, options.out)
    print(f"{options.out}: {options.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
