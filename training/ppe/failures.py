"""What goes wrong at a threshold: precision and recall per class, what false boxes show, how large the missed are.

`python -m ppe.failures ../models/ppe_detect/1/model.onnx --data ../../shared/datasets`. With `--draw DIR` the pictures
with the most errors are drawn there (green: right, red: false, yellow: missed), to look at, never to commit.
"""

import argparse
import collections
from pathlib import Path

import cv2
import numpy as np

from .cache import load
from .evaluate import detect, onnx_runner
from .model import CLASSES
from .sets import SETS, SIMULATOR, scored_classes

MATCH = 0.5


def overlaps(a, b):
    """IoU of boxes a [n, 4] and b [m, 4] (corners) as [n, m]."""
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = np.clip(high - low, 0, None).prod(2)
    area = lambda x: (x[:, 2:] - x[:, :2]).prod(1)
    return inter / (area(a)[:, None] + area(b)[None] - inter + 1e-9)


def judge(sample, found, threshold):
    """One picture: (right, false, missed) as lists of (class, box, remark); only classes its set labels."""
    scored = {CLASSES.index(c) for c in scored_classes(SETS.get(sample.set, SIMULATOR))}
    boxes, scores, ids = found
    truth, true_ids = sample.boxes[:, 1:], sample.boxes[:, 0].astype(int)
    iou = overlaps(np.asarray(boxes).reshape(-1, 4), truth) if len(truth) else np.zeros((len(boxes), 0))
    taken, right, false = set(), [], []
    for i in np.argsort(-scores):
        c = int(ids[i])
        if scores[i] < threshold or c not in scored:
            continue
        best = [k for k in np.argsort(-iou[i]) if true_ids[k] == c and k not in taken and iou[i, k] >= MATCH]
        if best:
            taken.add(best[0])
            right.append((c, boxes[i], ""))
        elif not any(c in g[0] and covered(boxes[i], g[1:]) for g in sample.ignores):
            false.append((c, boxes[i], remark(c, iou[i], true_ids)))
    missed = [(c, truth[k], size(truth[k], sample)) for k, c in enumerate(true_ids) if c in scored and k not in taken]
    return right, false, missed


def covered(box, outer):
    cx, cy = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return outer[0] <= cx <= outer[2] and outer[1] <= cy <= outer[3]


def remark(c, iou, true_ids):
    """Why a box is false: another class's object, a loose or second box on its own, or background."""
    if len(iou) == 0 or iou.max() < 0.1:
        return "background"
    same = iou[true_ids == c].max() if (true_ids == c).any() else 0
    other = iou[true_ids != c].max() if (true_ids != c).any() else 0
    if other >= MATCH and other > same:
        return CLASSES[true_ids[iou == other][0]]
    return "loose or double" if same >= 0.1 else "background"


def size(box, sample):
    """Share of the picture's longer side, of the geometric mean of the box's sides."""
    side = np.sqrt(np.prod(box[2:] - box[:2])) / max(sample.width, sample.height)
    return "tiny (< 4 %)" if side < 0.04 else "small (< 10 %)" if side < 0.1 else "large"


def draw(path, image, right, false, missed):
    picture = np.ascontiguousarray(image[..., ::-1])
    for rows, colour in ((right, (0, 200, 0)), (missed, (0, 220, 255)), (false, (0, 0, 255))):
        for c, b, _ in rows:
            p, q = (int(b[0]), int(b[1])), (int(b[2]), int(b[3]))
            cv2.rectangle(picture, p, q, colour, 1)
            cv2.putText(picture, CLASSES[c], (p[0], p[1] + 10), cv2.FONT_HERSHEY_SIMPLEX, 0.35, colour, 1)
    cv2.imwrite(str(path), picture)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("model")
    p.add_argument("--data", required=True)
    p.add_argument("--cache", default=".cache/ppe")
    p.add_argument("--simulator", nargs="*", default=[])
    p.add_argument("--size", type=int, nargs=2, default=(416, 416), metavar=("WIDTH", "HEIGHT"))
    p.add_argument("--threshold", type=float, default=0.35)
    p.add_argument("--draw", help="folder for the 24 worst pictures")
    a = p.parse_args()
    store = load(a.data, a.cache, "valid", a.simulator)
    found = detect(onnx_runner(a.model, 2), store, a.size)
    judged = [judge(store.samples[i][1], found[i], a.threshold) for i in range(len(store))]
    print(f"threshold {a.threshold}, size {a.size[0]} x {a.size[1]}\n\n| class | precision | recall | false boxes | missed |\n|---|---|---|---|---|")
    for c, name in enumerate(CLASSES):
        right, false, missed = ([r for j in judged for r in j[k] if r[0] == c] for k in range(3))
        n = len(right)
        kinds = [", ".join(f"{k} {v}" for k, v in collections.Counter(r[2] for r in rows).most_common(4)) for rows in (false, missed)]
        print(f"| {name} | {n / max(1, n + len(false)):.2f} | {n / max(1, n + len(missed)):.2f} | {kinds[0]} | {kinds[1]} |")
    if a.draw:
        Path(a.draw).mkdir(parents=True, exist_ok=True)
        worst = sorted(range(len(store)), key=lambda i: -len(judged[i][1]) - len(judged[i][2]))[:24]
        for i in worst:
            sample, image = store[i]
            draw(Path(a.draw) / f"{sample.set}-{sample.stem[:40]}.png", np.asarray(image), *judged[i])


if __name__ == "__main__":
    main()
