"""COCO scoring by pycocotools, each set on the classes it labels; see `python -m ppe.evaluate --help`."""

import argparse
import contextlib
import io
import json

import numpy as np
import torch

from .augment import letterbox
from .cache import load
from .model import CLASSES
from .sets import SETS, SIMULATOR, scored_classes

LOWEST_SCORE = 0.01
IOU_NMS = 0.6
MAX_BOXES = 100


def nms(boxes, scores, limit):
    """Greedy suppression of one class; boxes [n, 4] corners. Returns kept indices, best first."""
    order = scores.argsort()[::-1]
    keep = []
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    while len(order):
        i, order = order[0], order[1:]
        keep.append(i)
        low = np.maximum(boxes[i, :2], boxes[order, :2])
        high = np.minimum(boxes[i, 2:], boxes[order, 2:])
        inter = np.clip(high - low, 0, None).prod(1)
        order = order[inter / (area[i] + area[order] - inter + 1e-9) <= limit]
    return np.array(keep, int)


def picked(output, lowest=LOWEST_SCORE, limit=IOU_NMS):
    """One picture's [4 + C, A] -> boxes [n, 4] corners px, scores [n], ids [n] after per-class suppression."""
    box, score = output[:4].T, output[4:]
    boxes, scores, ids = [], [], []
    for c in range(score.shape[0]):
        at = np.nonzero(score[c] > lowest)[0]
        if len(at) > 400:
            at = at[np.argpartition(-score[c, at], 400)[:400]]
        if not len(at):
            continue
        b = np.concatenate([box[at, :2] - box[at, 2:] / 2, box[at, :2] + box[at, 2:] / 2], 1)
        keep = nms(b, score[c, at], limit)
        boxes.append(b[keep]), scores.append(score[c, at][keep]), ids.append(np.full(len(keep), c))
    if not boxes:
        return np.zeros((0, 4)), np.zeros(0), np.zeros(0, int)
    boxes, scores, ids = np.concatenate(boxes), np.concatenate(scores), np.concatenate(ids)
    best = scores.argsort()[::-1][:MAX_BOXES]
    return boxes[best], scores[best], ids[best]


def detect(run, store, size):
    """`run`: uint8 [N, height, width, 3] -> [N, 4 + C, A], `size`: (width, height). Returns per picture boxes in its own
    pixels, scores and class ids."""
    found = []
    for i in range(len(store)):
        sample, image = store[i]
        canvas, (scale, left, top) = letterbox(np.asarray(image), *size)
        boxes, scores, ids = picked(run(canvas[None])[0])
        boxes = (boxes - (left, top, left, top)) / scale
        boxes[:, 0::2] = boxes[:, 0::2].clip(0, sample.width)
        boxes[:, 1::2] = boxes[:, 1::2].clip(0, sample.height)
        found.append((boxes, scores, ids))
    return found


def coco_scores(store, found, names):
    """AP50 and mAP50-95 per class over the sets `names`; a class counts a picture only where its set labels it.

    Detections and truths of a class on pictures whose set does not label it are left out of that class's score.
    Where an ignore box of the set covers a class, it becomes a COCO crowd box (never a false positive).
    """
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    result = {}
    for c, name in enumerate(CLASSES):
        images, truths, boxes = [], [], []
        for i, (_, sample) in enumerate(store.samples):
            rule = SETS.get(sample.set, SIMULATOR)
            if sample.set not in names or name not in scored_classes(rule):
                continue
            images.append({"id": i, "width": sample.width, "height": sample.height})
            rows = [(b[1:], 0) for b in sample.boxes if int(b[0]) == c]
            rows += [(np.array(g[1:]), 1) for g in sample.ignores if c in g[0]]
            for b, crowd in rows:
                w, h = float(b[2] - b[0]), float(b[3] - b[1])
                truths.append(
                    {"id": len(truths) + 1, "image_id": i, "category_id": 1, "iscrowd": crowd, "area": w * h,
                     "bbox": [float(b[0]), float(b[1]), w, h]}
                )
            for b, s, k in zip(*found[i]):
                if k == c:
                    boxes.append({"image_id": i, "category_id": 1, "score": float(s),
                                  "bbox": [float(b[0]), float(b[1]), float(b[2] - b[0]), float(b[3] - b[1])]})
        count = sum(not t["iscrowd"] for t in truths)
        if count == 0:
            continue
        if not boxes:
            result[name] = {"ap50": 0.0, "map": 0.0, "objects": count}
            continue
        with contextlib.redirect_stdout(io.StringIO()):
            coco = COCO()
            coco.dataset = {"images": images, "annotations": truths, "categories": [{"id": 1, "name": name}]}
            coco.createIndex()
            e = COCOeval(coco, coco.loadRes(boxes), "bbox")
            e.evaluate(), e.accumulate(), e.summarize()
        result[name] = {"ap50": float(e.stats[1]), "map": float(e.stats[0]), "objects": count}
    return result


def summary(scores):
    values = list(scores.values())
    return {k: float(np.mean([v[k] for v in values])) if values else 0.0 for k in ("ap50", "map")}


def onnx_runner(path, threads=0, exact=False):
    """`exact`: products of int8 weights are added in 32 bits on every processor, as those with VNNI do by themselves."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"images": x})[0]


def torch_runner(detector):
    from .model import Deployed, fuse

    model = Deployed(fuse(detector)).eval().to(memory_format=torch.channels_last)

    def run(x):
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
            return model(torch.from_numpy(x)).float().numpy()

    return run


def report(store, found, per_set):
    """`all`: over the photograph sets together (over the simulator sets where there is nothing else)."""
    names = sorted({s.set for _, s in store.samples})
    whole = coco_scores(store, found, [n for n in names if not n.startswith("simulator")] or names)
    out = {"all": whole, "mean": summary(whole)}
    if per_set:
        out["sets"] = {n: coco_scores(store, found, [n]) for n in names}
    return out


def table(result):
    lines = ["| class | objects | AP50 | mAP50-95 |", "|---|---|---|---|"]
    for n in CLASSES:
        if n in result["all"]:
            r = result["all"][n]
            lines.append(f"| {n} | {r['objects']} | {r['ap50']:.3f} | {r['map']:.3f} |")
    lines.append(f"| mean | | {result['mean']['ap50']:.3f} | {result['mean']['map']:.3f} |")
    for name, scores in result.get("sets", {}).items():
        cells = ", ".join(f"{c} {v['ap50']:.2f}/{v['map']:.2f} ({v['objects']})" for c, v in scores.items())
        lines.append(f"\n{name}: {cells}")
    return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(description="AP50 and mAP50-95 of an exported model on the valid splits.")
    p.add_argument("model", help="an exported .onnx file")
    p.add_argument("--data", required=True, help="folder of the data sets")
    p.add_argument("--cache", default=".cache/ppe", help="where decoded pictures go")
    p.add_argument("--simulator", nargs="*", default=[], help="simulator folders (train/ and valid/ inside)")
    p.add_argument("--size", type=int, nargs=2, default=(416, 416), metavar=("WIDTH", "HEIGHT"))
    p.add_argument("--json", help="write all numbers here")
    a = p.parse_args()
    store = load(a.data, a.cache, "valid", a.simulator)
    result = report(store, detect(onnx_runner(a.model, 2), store, a.size), True)
    print(table(result))
    if a.json:
        with open(a.json, "w") as f:
            json.dump(result, f, indent=1)


if __name__ == "__main__":
    main()
