"""Pictures decoded once into one flat uint8 file per set and split, with their converted labels beside it."""

import hashlib
import inspect
import os
import pickle
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from .model import CLASSES
from .sets import MACHINES, SETS, SIMULATOR, convert, source_of, with_machines


@dataclass
class Sample:
    """One picture. boxes: float32 [G, 5] (class id, x1, y1, x2, y2 in its own pixels); ignores: [(ids, x1..y2)];
    labelled: bool [classes]."""

    set: str
    stem: str
    source: str
    offset: int
    height: int
    width: int
    boxes: np.ndarray
    ignores: list
    labelled: np.ndarray


class Store:
    """Samples of several sets over memory-mapped pixels; safe to share with loader processes."""

    def __init__(self, parts):
        self.samples, self.maps = [], {}
        for path, samples in parts:
            for s in samples:
                self.samples.append((str(path), s))

    def __len__(self):
        return len(self.samples)

    def __getstate__(self):
        """Pickled without the maps: a loader process opens its own, and a memmap is pickled as a copy of the whole file."""
        return {**vars(self), "maps": {}}

    def __getitem__(self, i):
        path, s = self.samples[i]
        if path not in self.maps:
            self.maps[path] = np.memmap(path, np.uint8, "r")
        n = s.height * s.width * 3
        return s, self.maps[path][s.offset : s.offset + n].reshape(s.height, s.width, 3)


def read_rows(path):
    rows = []
    if path.exists():
        for line in path.read_text().split("\n"):
            p = line.split()
            if len(p) == 5:
                rows.append((int(p[0]), *map(float, p[1:])))
    return rows


def build(rule, name, folder, pixels_path):
    """Decodes `folder/images` (longest side at most rule.max_side) into `pixels_path`; returns the samples."""
    samples, offset = [], 0
    with open(pixels_path, "wb") as out:
        for path in sorted((folder / "images").iterdir()):
            image = cv2.imread(str(path), cv2.IMREAD_COLOR)
            if image is None:
                print(f"left out: {path} is no picture that OpenCV reads", flush=True)
                continue
            image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
            scale = min(1.0, rule.max_side / max(image.shape[:2]))
            if scale < 1:
                image = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
            h, w = image.shape[:2]
            boxes, ignores = convert(rule, read_rows(folder / "labels" / (path.stem + ".txt")), w, h)
            boxes, ignores, classes = with_machines(name, path.stem, boxes, ignores, rule.labelled, w, h)
            labelled = np.array([c in classes for c in CLASSES])
            array = np.array(boxes, np.float32).reshape(-1, 5)
            out.write(np.ascontiguousarray(image).tobytes())
            samples.append(
                Sample(name, path.stem, source_of(rule, path.stem), offset, h, w, array, ignores, labelled)
            )
            offset += h * w * 3
    return samples


def fingerprint(rule):
    """Of everything the rule says; the same in every process (the order of a set differs from one to the next)."""
    plain = {**vars(rule), "labelled": sorted(rule.labelled), "score": rule.score and sorted(rule.score)}
    return hashlib.sha1(repr(sorted(plain.items())).encode()).hexdigest()[:8]


def contents(folder):
    """Changes with any picture or label of a folder, with the machines labelled by hand and with the code that reads them."""
    digest = hashlib.sha1("".join(map(inspect.getsource, (build, read_rows, convert, with_machines))).encode())
    digest.update(MACHINES.read_bytes())
    for kind in ("images", "labels"):
        for entry in sorted(os.scandir(folder / kind), key=lambda e: e.name) if (folder / kind).is_dir() else ():
            digest.update(f"{kind}/{entry.name} {entry.stat().st_size} {entry.stat().st_mtime_ns}\n".encode())
    return digest.hexdigest()[:8]


def load(data, cache, split, simulator=()):
    """All sets found under `data`, and the simulator folders (each with train/ and valid/), for one split. What was decoded of a
    folder's former contents is deleted."""
    cache = Path(cache)
    cache.mkdir(parents=True, exist_ok=True)
    folders = [(n, r, Path(data) / n / split) for n, r in SETS.items() if (Path(data) / n / split).is_dir()]
    for k, folder in enumerate(simulator):
        if not (Path(folder) / split / "images").is_dir():
            raise SystemExit(f"--simulator {folder}: there is no {split}/images in it; `npm run sim -- dataset` makes such folders")
        folders.append((f"simulator{k}", SIMULATOR, Path(folder) / split))
    parts = []
    for name, rule, folder in folders:
        of = f"{name}-{split}-{hashlib.sha1(str(folder.resolve()).encode()).hexdigest()[:6]}"
        key = cache / f"{of}-{fingerprint(rule)}-{contents(folder)}"
        index, pixels = key.with_suffix(".pkl"), key.with_suffix(".u8")
        if not index.exists():
            unfinished = index.with_suffix(f".{os.getpid()}")
            unfinished.write_bytes(pickle.dumps(build(rule, name, folder, pixels)))
            unfinished.rename(index)
            for old in cache.glob(f"{of}-*"):
                if old.stem != key.name:
                    old.unlink()
        parts.append((pixels, pickle.loads(index.read_bytes())))
    if not parts:
        raise SystemExit(f"no data sets under {data}: expected folders {', '.join(SETS)}")
    return Store(parts)


def described(store):
    """How many samples each set has, and which sets there are none of."""
    counts = {}
    for _, s in store.samples:
        counts[s.set] = counts.get(s.set, 0) + 1
    absent = [name for name in SETS if name not in counts]
    return ", ".join(f"{name} {n}" for name, n in counts.items()) + (f"; not there: {', '.join(absent)}" if absent else "")


def check_sources(train, valid):
    """Sources that are in both splits of the same set: must be none."""
    both = {(s.set, s.source) for _, s in train.samples} & {(s.set, s.source) for _, s in valid.samples}
    return sorted(both)
