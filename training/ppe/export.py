"""Checkpoint -> the published models: fp32, int8 (QDQ), fp16, and int8 for video; each a Triton model folder.

`python -m ppe.export RUN/last.pt --models ../models --data ../shared/datasets --cache RUN/cache`. Without a checkpoint the int8 files alone
are made anew, from the fp32 file that is there.
"""

import argparse
import warnings
from pathlib import Path

import onnx
import torch
import torch.nn as nn

from .cache import load
from .int8 import quantise
from .model import CLASSES, EXCLUSIVE, STRIDES, Deployed, Detector, fuse
from .weights import load_init, save_compact

OPSET = 17
IMAGE_SIZE = (416, 416)  # width, height
VIDEO_SIZE = (800, 448)  # of a 16:9 picture 3.7 times as many pixels arrive as at 416 x 416, for twice the work
VARIANTS = FP32, INT8, FP16 = "ppe_detect", "ppe_detect_int8", "ppe_detect_fp16"  # of IMAGE_SIZE
VIDEO = "ppe_detect_video"  # the int8 network for cameras, calibrated at VIDEO_SIZE


class Half(nn.Module):
    """Convolutions in float16, pixels and decoding in float32 (a float16 coordinate is off by 0.25 px at 640)."""

    def __init__(self, fused):
        super().__init__()
        self.body = _HalfBody(fused)

    def forward(self, images):
        return Deployed.forward(self, images)

    @property
    def detector(self):
        return self.body


class _HalfBody(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.net = fused.half()

    def levels(self, x):
        return [(box.float(), cls.float()) for box, cls in self.net.levels(x.half())]


def write_graph(module, path, size=IMAGE_SIZE):
    width, height = size
    images = torch.zeros(1, height, width, 3, dtype=torch.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(), images, str(path), opset_version=OPSET, dynamo=False,
            input_names=["images"], output_names=["output0"],
            dynamic_axes={"images": {0: "batch", 1: "height", 2: "width"}, "output0": {0: "batch", 2: "points"}},
        )
    model = onnx.load(path)
    # The exporter forgets that boxes and scores are that many: a reader that knows no more than the file can tell the head by it.
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 4 + len(CLASSES)
    onnx.save(model, path)


def stamp(path, precision, size):
    """Metadata that a reader of YOLO-style files looks for, and the licence; the graph checked."""
    model = onnx.load(path)
    names = "{" + ", ".join(f"{i}: '{n}'" for i, n in enumerate(CLASSES)) + "}"
    onnx.helper.set_model_props(
        model,
        {
            "names": names, "stride": str(max(STRIDES)), "imgsz": f"[{size[1]}, {size[0]}]", "task": "detect",
            "precision": precision, "layout": "NHWC uint8 RGB, letterboxed with 114",
            "output": "cx, cy, w, h in input pixels, then one score per class, 0..1; no suppression",
            "license": "Apache-2.0", "description": "Gantry PPE detector",
        },
    )
    model.producer_name, model.producer_version = "gantry-training", "1"
    onnx.checker.check_model(model)
    onnx.save(model, path)


CONFIG = """name: "{name}"
platform: "onnxruntime_onnx"
max_batch_size: 16
input [
  {{
    name: "images"
    data_type: TYPE_UINT8
    format: FORMAT_NHWC
    dims: [ {height}, {width}, 3 ]
  }}
]
output [
  {{
    name: "output0"
    data_type: TYPE_FP32
    dims: [ {channels}, {points} ]
    label_filename: "labels.txt"
  }}
]
dynamic_batching {{ }}
parameters {{ key: "gantry.exclusive_labels" value {{ string_value: "{exclusive}" }} }}
"""


def write_folder(models, name, size):
    folder = Path(models) / name
    (folder / "1").mkdir(parents=True, exist_ok=True)
    width, height = size
    points = sum((width // s) * (height // s) for s in STRIDES)
    exclusive = "; ".join(", ".join(pair) for pair in EXCLUSIVE)
    (folder / "config.pbtxt").write_text(
        CONFIG.format(
            name=name, width=width, height=height, channels=4 + len(CLASSES), points=points, exclusive=exclusive
        )
    )
    (folder / "labels.txt").write_text("\n".join(CLASSES) + "\n")
    return folder / "1" / "model.onnx"


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("checkpoint", nargs="?", help="RUN/last.pt (its moving average is taken), an .npz or an .onnx; none: int8 only")
    p.add_argument("--models", default="../models")
    p.add_argument("--data", required=True, help="data sets, for calibration")
    p.add_argument("--cache", default=".cache/ppe")
    p.add_argument("--simulator", nargs="*", default=[])
    p.add_argument("--size", type=int, nargs=2, default=IMAGE_SIZE, metavar=("WIDTH", "HEIGHT"))
    p.add_argument("--compact", help="also write the weights as a float16 .npz, to train on from")
    a = p.parse_args()
    folder = lambda name, size=a.size: write_folder(a.models, name, size)
    if a.checkpoint:
        model = Detector().eval()
        load_init(model, a.checkpoint)
        if a.compact:
            save_compact(model, a.compact)
        fp32, fp16 = folder(FP32), folder(FP16)
        write_graph(Deployed(fuse(model)), fp32, a.size)
        write_graph(Half(fuse(model)), fp16, a.size)
        stamp(fp32, "float32", a.size), stamp(fp16, "float16", a.size)
    else:
        fp32 = Path(a.models) / FP32 / "1" / "model.onnx"
        if not fp32.is_file():
            raise SystemExit(f"{fp32} is not there to be quantised: name a checkpoint")
    store = load(a.data, a.cache, "train", a.simulator)
    for name, size in ((INT8, a.size), (VIDEO, VIDEO_SIZE)):
        path = folder(name, size)
        quantise(fp32, path, store, size)
        stamp(path, "int8", size)
        print(path, f"{path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
