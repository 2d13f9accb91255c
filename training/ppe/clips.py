"""Precision and recall on simulator clips, whose truth is exact, at a threshold: per clip and class.

`python -m ppe.clips ../models/ppe_detect/1/model.onnx --clips ../pipelines/demo/clips --threshold 0.3`. Pictures are read as a
camera's are, by ffmpeg with the filters of `src/sources/geometry.ts`; what interpolates otherwise sees other pictures and measures
up to four points more. Suppression is the pipeline's: the best class of each point, NMS at its default IoU of 0.5 within a class
and among the labels that exclude each other.
"""

import argparse
import json
import subprocess
from pathlib import Path

import cv2
import numpy as np

from .evaluate import nms, onnx_runner
from .failures import overlaps
from .model import CLASSES, EXCLUSIVE

MATCH = 0.5
LEAST = 0.02
PIPELINE_NMS = 0.5
MOST = 400  # candidates of a group that go through NMS
GROUPS = np.array([next((CLASSES.index(pair[0]) for pair in EXCLUSIVE if c in pair), k) for k, c in enumerate(CLASSES)])
MISLEADING = {"frozen", "black", "covered", "moved"}  # faults whose picture does not show what its truth says


def label_box(thing):
    """The box a label holds, or None: the rule of `labelBox` in `sim/dataset/labels.ts`."""
    seen, visible = thing["visibleBox"], thing["visible"]
    if seen is None:
        return None
    shown = (seen[2] - seen[0]) * (seen[3] - seen[1])
    if visible < 0.25 and not (visible >= 0.06 and shown >= 10_000):
        return None
    box = thing["box"] if visible >= 0.9 else seen
    return None if min(box[2] - box[0], box[3] - box[1]) < 8 else box


def truth_of(frame):
    """(boxes [n, 4], class ids [n], boxes [m, 4] and ids [m] of things too hidden or too small to be labelled)."""
    rows, hidden = [], []
    for thing in frame["objects"]:
        box = label_box(thing)
        (rows if box is not None else hidden).append((CLASSES.index(thing["class"]), box or thing["box"]))
    split = lambda xs: (np.array([x[1] for x in xs], float).reshape(-1, 4), np.array([x[0] for x in xs], int))
    return *split(rows), *split(hidden)


def match(found, truth, threshold):
    """One frame: rows (class, score, right) of the boxes at or above the threshold, best first, and the labelled count
    per class. A box is right if it overlaps a free truth of its class by IoU 0.5; one on an unlabelled thing of its
    class is left out."""
    boxes, scores, ids = found
    true_boxes, true_ids, hidden_boxes, hidden_ids = truth
    iou = overlaps(boxes, true_boxes) if len(boxes) else np.zeros((0, len(true_boxes)))
    on_hidden = overlaps(boxes, hidden_boxes) if len(boxes) else np.zeros((0, len(hidden_boxes)))
    taken, rows = set(), []
    for i in np.argsort(-scores, kind="stable"):
        if scores[i] < threshold:
            break
        best = [k for k in np.argsort(-iou[i]) if true_ids[k] == ids[i] and k not in taken and iou[i, k] >= MATCH]
        if best:
            taken.add(best[0])
        elif ((hidden_ids == ids[i]) & (on_hidden[i] >= 0.3)).any():
            continue
        rows.append((int(ids[i]), float(scores[i]), bool(best)))
    return rows, np.bincount(true_ids, minlength=len(CLASSES))


def letterbox_filter(width, height):
    """The filters of `letterboxFilters` in `src/sources/geometry.ts`, and what turns its pixels back: (scale, left, top) of a size."""
    ratio = rf"min({width}/iw\,{height}/ih)"
    filters = (
        rf"scale=w=max(1\,round(iw*{ratio})):h=max(1\,round(ih*{ratio})):flags=bicubic,"
        "format=yuv422p|yuvj422p|yuv444p|yuvj444p|gbrp10le|gbrp12le|rgb24,"
        "scale=flags=full_chroma_int,format=rgb24,"
        f"pad=w={width}:h={height}:x=floor((ow-iw)/2):y=floor((oh-ih)/2):color=0x727272"
    )

    def place(w, h):
        scale = min(width / w, height / h)
        return scale, (width - max(1, round(w * scale))) // 2, (height - max(1, round(h * scale))) // 2

    return filters, place


def read_clip(path, size, stride=1):
    """Yields (input of the model [height, width, 3] RGB, its place, frame of the truth) for every `stride`-th frame that the truth
    holds. `size`: (width, height) of the input."""
    width, height = size
    truth = json.loads(path.with_suffix("").with_suffix(".truth.json").read_text())
    frames = {f["frame"]: f for f in truth["frames"][::stride]}
    capture = cv2.VideoCapture(str(path))
    source = capture.get(cv2.CAP_PROP_FRAME_WIDTH), capture.get(cv2.CAP_PROP_FRAME_HEIGHT)
    capture.release()
    filters, place = letterbox_filter(width, height)
    command = ["ffmpeg", "-v", "error", "-nostdin", "-i", str(path), "-vf", filters, "-fps_mode", "passthrough", "-f", "rawvideo", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as decoder:
        for number in range(max(frames) + 1):
            data = decoder.stdout.read(width * height * 3)
            if len(data) < width * height * 3:
                raise SystemExit(f"{path} ends at frame {number}, its truth at {max(frames)}")
            if number in frames and not MISLEADING & set(frames[number]["faults"]):
                yield np.frombuffer(data, np.uint8).reshape(height, width, 3), place(*source), frames[number]
        decoder.kill()


def read_head(output):
    """One picture's [4 + C, A] as the pipeline reads it: boxes [n, 4] corners px, scores [n], class ids [n]."""
    best, ids = output[4:].max(0), output[4:].argmax(0)
    corners = np.concatenate([output[:2] - output[2:4] / 2, output[:2] + output[2:4] / 2]).T
    kept = []
    for group in np.unique(GROUPS):
        at = np.nonzero((best > LEAST) & (GROUPS[ids] == group))[0]
        at = at[np.argsort(-best[at], kind="stable")[:MOST]]
        kept += [at[k] for k in nms(corners[at], best[at], PIPELINE_NMS)]
    at = np.array(kept, int)
    return corners[at], best[at], ids[at]


def detect_picture(run, picture, place):
    """Boxes in pixels of the camera's picture, scores and class ids."""
    scale, left, top = place
    boxes, scores, ids = read_head(run(picture[None])[0])
    return (boxes - (left, top, left, top)) / scale, scores, ids


def measure(run, clips, size, stride=1):
    """Per clip: a list of (found, truth) of its frames. `size`: (width, height) of the model's input."""
    return {
        clip.stem: [
            (detect_picture(run, picture, place), truth_of(frame)) for picture, place, frame in read_clip(clip, size, stride)
        ]
        for clip in clips
    }


def score(frames, threshold):
    """{class: (precision, recall, objects)} over frames, at the threshold; None where there is nothing to divide by."""
    right, false, objects = (np.zeros(len(CLASSES), int) for _ in range(3))
    for found, truth in frames:
        rows, count = match(found, truth, threshold)
        objects += count
        for c, _, good in rows:
            (right if good else false)[c] += 1
    share = lambda a, b: a / b if b else None
    return {
        name: (share(right[c], right[c] + false[c]), share(right[c], objects[c]), int(objects[c]))
        for c, name in enumerate(CLASSES)
        if objects[c] or false[c]
    }


def cell(value):
    return "-" if value is None else f"{value:.3f}"


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("model")
    p.add_argument("--clips", default="../pipelines/demo/clips", help="folder of NAME.mp4 and NAME.truth.json")
    p.add_argument("--size", type=int, nargs=2, default=(416, 416), metavar=("WIDTH", "HEIGHT"), help="of the input")
    p.add_argument("--threshold", type=float, nargs="+", default=[0.3], help="more than one: a table over all clips")
    p.add_argument("--stride", type=int, default=1, help="every n-th frame of the truth")
    a = p.parse_args()
    clips = measure(onnx_runner(a.model, 1), sorted(Path(a.clips).glob("*.mp4")), a.size, a.stride)
    clips["all"] = [frame for frames in clips.values() for frame in frames]
    print("| clip | threshold | class | objects | precision | recall |\n|---|---|---|---|---|---|")
    for name in clips if len(a.threshold) == 1 else ["all"]:
        for threshold in a.threshold:
            for c, (precision, recall, count) in score(clips[name], threshold).items():
                print(f"| {name} | {threshold:g} | {c} | {count} | {cell(precision)} | {cell(recall)} |")


if __name__ == "__main__":
    main()
