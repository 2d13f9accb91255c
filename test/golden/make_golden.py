"""Writes the reference traces of this folder.

    pip install numpy==2.4.6 torch==2.9.1 torchvision==0.24.1
    python test/golden/make_golden.py

nms.json        torchvision.ops.batched_nms
letterbox.json  the formulas of Ultralytics 8.3 (LetterBox, ops.scale_boxes, ops.clip_boxes) and of YOLOX 0.3 (preproc), in numpy
"""

import json
from pathlib import Path

import numpy as np
import torch
import torchvision

HERE = Path(__file__).parent


def nms_cases():
    rng = np.random.default_rng(20260801)
    for count, classes, spread, iou in [
        (1, 1, 640, 0.5),
        (12, 1, 60, 0.5),
        (40, 3, 200, 0.45),
        (120, 7, 320, 0.5),
        (200, 2, 640, 0.7),
        (60, 80, 100, 0.6),
        (60, 1, 40, 0.0),
        (60, 1, 40, 1.0),
    ]:
        centre = rng.uniform(0, spread, (count, 2))
        size = rng.uniform(4, spread / 3, (count, 2))
        # Eighths of a pixel are exact in float32, so that the trace holds what the reference saw.
        boxes = np.round(np.concatenate([centre - size / 2, centre + size / 2], 1) * 8) / 8
        scores = np.round(rng.uniform(0.25, 1, count), 4).astype(np.float32)
        if count > 5:
            scores[3] = scores[5]  # equals keep their order
        ids = rng.integers(0, classes, count)
        kept = torchvision.ops.batched_nms(
            torch.tensor(boxes, dtype=torch.float32), torch.tensor(scores), torch.tensor(ids), iou
        )
        yield {
            "iouThreshold": iou,
            "boxes": boxes.tolist(),
            "scores": [float(s) for s in scores],
            "classes": ids.tolist(),
            "kept": kept.tolist(),
        }


def letterbox_cases():
    rng = np.random.default_rng(7)
    sizes = [(1920, 1080), (1280, 720), (640, 480), (480, 270), (1080, 1920), (333, 517), (640, 640), (2560, 1440)]
    for source_w, source_h in sizes:
        for input_w, input_h in [(640, 640), (416, 416), (640, 384)]:
            for align in ["center", "top-left"]:
                gain = min(input_w / source_w, input_h / source_h)
                pad_x = pad_y = 0
                if align == "center":
                    pad_x = round((input_w - round(source_w * gain)) / 2 - 0.1)
                    pad_y = round((input_h - round(source_h * gain)) / 2 - 0.1)
                corner = rng.uniform(-20, [input_w, input_h], (4, 2))
                boxes = np.concatenate([corner, corner + rng.uniform(5, 200, (4, 2))], 1)
                back = (boxes - np.array([pad_x, pad_y, pad_x, pad_y])) / gain
                back[:, [0, 2]] = back[:, [0, 2]].clip(0, source_w)
                back[:, [1, 3]] = back[:, [1, 3]].clip(0, source_h)
                yield {
                    "source": {"widthPx": source_w, "heightPx": source_h},
                    "input": {"widthPx": input_w, "heightPx": input_h},
                    "align": align,
                    "letterbox": {"scale": gain, "padXPx": pad_x, "padYPx": pad_y},
                    "boxes": np.round(boxes, 6).tolist(),
                    "expected": np.round(back, 6).tolist(),
                }


def write(name, made_by, cases):
    lines = ",\n".join("    " + json.dumps(case) for case in cases)
    made = json.dumps(made_by)
    (HERE / name).write_text('{\n  "madeBy": ' + made + ',\n  "cases": [\n' + lines + "\n  ]\n}\n")


write("nms.json", f"torchvision {torchvision.__version__}, torch {torch.__version__}", nms_cases())
write("letterbox.json", f"formulas of Ultralytics 8.3 and YOLOX 0.3, numpy {np.__version__}", letterbox_cases())
