"""Machines cut out of photographs and pasted into others (Dwibedi et al., Cut, Paste and Learn, ICCV 2017).

Machines at work stand close together and hide parts of each other, and of a few hundred photographed ones hardly two are seen so twice.
Cut out by GrabCut (Rother et al., SIGGRAPH 2004) they can stand beside any other, at any size, in front of any scene.
"""

import hashlib
import inspect
import os
import pickle
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from .augment import SCALINGS, blank, scaled, simulated
from .model import CLASSES

MACHINERY = CLASSES.index("machinery")
BOXED_AS_SEEN = [MACHINERY, CLASSES.index("vehicle")]  # people and heads keep the box of the whole
PEOPLE = [CLASSES.index(name) for name in ("helmet", "head", "person", "vest", "no_vest")]
LEAST_SIDE = 56  # px of a box; smaller machines give no outline to cut along
MOST_SHARED = 0.1  # of a box with another box: what hides a machine would be cut out with it
AROUND = 0.12  # of a box's sides, the background that GrabCut learns from
FILLED = (0.3, 0.92)  # of a box, by what was cut out: less lost the machine, more kept its background
SPANNED = 0.85  # least share of a box's width and height
BESIDE = (0.45, 1.3)  # size of what is pasted, as a share of that of the machine it is pasted beside
APART = (0.4, 1.0)  # of half the widths of both: distance of their middles
ALONE = (0.15, 0.8)  # of the canvas, where there is no machine to paste it beside
LEAST_PASTED = 24  # px of either side
MOST_ENLARGED = 1.5
COVERED = 0.7  # of a row or column at the edge of a machine's box: what is hidden so ends the box, as boxes drawn by people do
MOST_HIDDEN = 0.6  # of a box by what is pasted over it; one more hidden is dropped, and its place not judged


def cut_out(image, box):
    """Mask of what stands in a box: uint8 [h, w] 0 or 255 in the box's own pixels; None if GrabCut finds nothing that fills and spans it."""
    h, w = image.shape[:2]
    x1, y1, x2, y2 = (int(round(float(v))) for v in box)
    x1, y1, x2, y2 = max(0, x1), max(0, y1), min(w, x2), min(h, y2)
    dx, dy = int((x2 - x1) * AROUND) + 2, int((y2 - y1) * AROUND) + 2
    left, top, right, bottom = max(0, x1 - dx), max(0, y1 - dy), min(w, x2 + dx), min(h, y2 + dy)
    if (x1 - left) + (right - x2) + (y1 - top) + (bottom - y2) < dx + dy:
        return None  # hardly any background around it in the picture
    part = cv2.cvtColor(np.ascontiguousarray(image[top:bottom, left:right]), cv2.COLOR_RGB2BGR)
    mask = np.full(part.shape[:2], cv2.GC_BGD, np.uint8)
    mask[y1 - top : y2 - top, x1 - left : x2 - left] = cv2.GC_PR_FGD
    models = np.zeros((1, 65)), np.zeros((1, 65))
    cv2.setRNGSeed(1)
    cv2.grabCut(part, mask, None, *models, 4, cv2.GC_INIT_WITH_MASK)
    mask = np.isin(mask, (cv2.GC_FGD, cv2.GC_PR_FGD)).astype(np.uint8)[y1 - top : y2 - top, x1 - left : x2 - left]
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask)
    if count < 2:
        return None
    largest = 1 + int(stats[1:, cv2.CC_STAT_AREA].argmax())
    _, _, wide, high, area = stats[largest]
    if not (FILLED[0] <= area / mask.size <= FILLED[1] and wide >= SPANNED * mask.shape[1] and high >= SPANNED * mask.shape[0]):
        return None
    return (labels == largest).astype(np.uint8) * 255


@dataclass
class Cutout:
    """A machine in a photograph: `index` in the store, where in its own pixels, `mask` uint8 [h, w] of it."""

    index: int
    left: int
    top: int
    mask: np.ndarray


def cut_all(store):
    """Every machine of the photographs that nothing hides and GrabCut cuts out, by the source of its picture."""
    by_source = {}
    for index, (_, sample) in enumerate(store.samples):
        machines = np.nonzero(sample.boxes[:, 0] == MACHINERY)[0]
        if simulated(sample) or not sample.labelled[MACHINERY] or not len(machines):
            continue
        image = np.asarray(store[index][1])
        for i in machines:
            box, others = sample.boxes[i, 1:], np.delete(sample.boxes[:, 1:], i, 0)
            sides = box[2:] - box[:2]
            shared = np.clip(np.minimum(others[:, 2:], box[2:]) - np.maximum(others[:, :2], box[:2]), 0, None).prod(1).sum()
            if sides.min() < LEAST_SIDE or shared > MOST_SHARED * sides.prod():
                continue
            mask = cut_out(image, box)
            if mask is not None:
                left, top = (max(0, round(float(v))) for v in box[:2])
                by_source.setdefault((sample.set, sample.source), []).append(Cutout(index, left, top, mask))
    return list(by_source.values())


def cutouts(store, cache):
    """`cut_all`, found again in `cache` (it takes minutes). A list per source: its versions are as often pasted as one picture of another."""
    key = hashlib.sha1("".join(map(inspect.getsource, (cut_out, cut_all))).encode())
    key.update(repr((LEAST_SIDE, MOST_SHARED, AROUND, FILLED, SPANNED)).encode())
    for path in sorted({path for path, sample in store.samples if not simulated(sample)}):
        key.update(Path(path).name.encode())  # which has the contents of the set in it
    kept = Path(cache) / f"cutouts-{key.hexdigest()[:8]}.pkl"
    if not kept.exists():
        print("cutting out machines, for some minutes and once", flush=True)
        unfinished = kept.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(pickle.dumps(cut_all(store)))
        unfinished.rename(kept)
        for old in Path(cache).glob("cutouts-*.pkl"):
            if old != kept:
                old.unlink()
    return pickle.loads(kept.read_bytes())


class Paste:
    """Pastes cutouts (of `cutouts`) of a store's photographs into canvases."""

    def __init__(self, store, by_source):
        self.store, self.by_source = store, by_source

    def __call__(self, rng, canvas, judged, boxes):
        """Beside and partly over a machine of the canvas if there is one, else anywhere. Changes canvas and judged, returns the boxes."""
        if not self.by_source:
            return boxes
        versions = self.by_source[rng.integers(len(self.by_source))]
        cutout = versions[rng.integers(len(versions))]
        high, wide = cutout.mask.shape
        size = canvas.shape[0]
        left, top, w, h = place_for(rng, size, boxes, wide, high)
        x1, y1, x2, y2 = max(0, left), max(0, top), min(size, left + w), min(size, top + h)
        if min(x2 - x1, y2 - y1) < LEAST_PASTED or (x2 - x1) * (y2 - y1) < 0.5 * w * h:
            return boxes
        region = (cutout.left, cutout.top, cutout.left + wide, cutout.top + high)
        machine = scaled(self.store[cutout.index][1], region, (w, h), SCALINGS[rng.integers(len(SCALINGS))])
        mask = cv2.resize(cutout.mask, (w, h), interpolation=cv2.INTER_AREA)
        soft = int(rng.choice((1, 3, 5)))  # how an edge is blended must tell nothing
        mask = cv2.GaussianBlur(mask, (soft, soft), 0)
        if rng.random() < 0.5:
            machine, mask = machine[:, ::-1], mask[:, ::-1]
        machine, mask = (a[y1 - top : y2 - top, x1 - left : x2 - left] for a in (machine, mask))
        alpha = mask[..., None].astype(np.float32) / 255
        canvas[y1:y2, x1:x2] = np.rint(alpha * machine + (1 - alpha) * canvas[y1:y2, x1:x2]).astype(np.uint8)
        hidden = np.zeros((size, size), bool)
        hidden[y1:y2, x1:x2] = mask > 127
        blank(judged, (x1, y1, x2, y2), PEOPLE, (0, 0, size, size))  # who sits in it is pasted too, without a box
        seen = np.array([share_of(hidden, box) <= MOST_HIDDEN for box in boxes[:, 1:]], bool)
        for id, *box in boxes[~seen]:
            blank(judged, box, [int(id)], (0, 0, size, size))
        boxes = boxes[seen].copy()
        for row in boxes:
            if row[0] in BOXED_AS_SEEN:
                row[1:] = visible_part(hidden, row[1:])
        return np.concatenate([boxes, np.array([[MACHINERY, x1, y1, x2, y2]], np.float32)])


def place_for(rng, size, boxes, wide, high):
    """(left, top, width, height) in whole pixels, which may reach beyond the canvas, of something `wide` x `high`."""
    hosts = boxes[(boxes[:, 0] == MACHINERY) & ((boxes[:, 3:] - boxes[:, 1:3]).min(1) > LEAST_PASTED), 1:].astype(float)
    x1, y1, x2, y2 = hosts[rng.integers(len(hosts))] if len(hosts) else (0, 0, size, size)
    side = np.sqrt((x2 - x1) * (y2 - y1)) * np.exp(rng.uniform(*np.log(BESIDE if len(hosts) else ALONE)))
    scale = min(side / np.sqrt(wide * high), MOST_ENLARGED)
    w, h = round(wide * scale), round(high * scale)
    if len(hosts):
        x = (x1 + x2) / 2 + rng.choice((-1, 1)) * rng.uniform(*APART) * (x2 - x1 + w) / 2
        y = y2 + rng.uniform(-0.25, 0.25) * h - h / 2
    else:
        x, y = rng.uniform(0.1, 0.9, 2) * size
    return round(x - w / 2), round(y - h / 2), max(1, w), max(1, h)


def visible_part(hidden, box):
    """The box less the rows and columns at its edges of which COVERED or more is hidden (bool [size, size]), in whole pixels there.
    At most MOST_HIDDEN of it is, so some are left."""
    x1, y1, x2, y2 = (max(0, int(round(float(v)))) for v in box)
    part = hidden[y1:y2, x1:x2]
    if not part.any():
        return box
    out = np.array(box, np.float32)
    for side, start in enumerate((x1, y1)):
        shares = part.mean(side)  # of each column, then of each row
        seen = np.nonzero(shares < COVERED)[0]
        if seen[0] > 0:
            out[side] = start + seen[0]
        if seen[-1] + 1 < len(shares):
            out[side + 2] = start + seen[-1] + 1
    return out


def share_of(hidden, box):
    """Of a box [x1, y1, x2, y2], how much is hidden (bool [size, size])."""
    x1, y1, x2, y2 = (max(0, int(round(float(v)))) for v in box)
    part = hidden[y1:y2, x1:x2]
    return float(part.mean()) if part.size else 1.0
