"""How the sets are reconciled: one explicit table. What it says is all that scoring knows of a set; training also knows the
machines of `machines.txt`, found by hand on pictures of two of them.

Shipped convention: `helmet` and `head` boxes cover the WHOLE head, with or without its helmet. Sets that box only the
helmet or the hair get their boxes extended downwards by a measured factor (see README.md, "Box conventions").
"""

import functools
from dataclasses import dataclass, field
from pathlib import Path

from .model import CLASSES

ID = {name: i for i, name in enumerate(CLASSES)}


@dataclass(frozen=True)
class Take:
    """What becomes of one class of a set. `extend`: new height / old height, the top edge stays.

    `max_aspect` stops the extension at that height / width, so that boxes which already reach the chin stay.
    """

    to: str
    extend: float = 1.0
    max_aspect: float = 1.5


@dataclass(frozen=True)
class Ignore:
    """Boxes of this class are no objects, but inside them the named classes are not judged."""

    classes: tuple[str, ...]


@dataclass(frozen=True)
class SetRule:
    """`labelled`: the classes boxed completely. A point of any other class is never a negative in this set, and the
    class is not scored on it; its few boxes still count as positives. `rules`: by the set's own class index; a class
    without a rule is dropped (background)."""

    labelled: frozenset[str]
    rules: dict[int, object]
    score: frozenset[str] | None = None
    source_of: str = "image"
    max_side: int = 416
    note: str = ""


def _names(*names):
    return frozenset(names)


STRETCHED = 2.2  # sets stretched to a square: a 3:2 picture makes every box 1.5 times as tall

SETS = {
    "hardhat-workers": SetRule(
        _names("helmet", "head"),
        # `person` is boxed mostly where a head box is missing: neither object nor background.
        {0: Take("helmet"), 1: Take("head"), 2: Ignore(("head", "helmet", "person"))},
        note="whole heads as published",
    ),
    "construction-safety": SetRule(
        _names("helmet", "head", "person", "vest", "no_vest"),
        {0: Take("helmet", 1.6), 1: Take("head", 1.6), 2: Take("no_vest"), 3: Take("person"), 4: Take("vest")},
        note="helmet only -> whole head",
    ),
    "hardhat-headwear-person": SetRule(
        # Machines are not labelled and hardly there: of the 60 pictures in which one was found most surely, six show one.
        _names("helmet", "head", "person", "machinery"),
        {
            0: Take("helmet", 1.55, STRETCHED),
            1: Take("head", 1.8, STRETCHED),  # caps, hoods, scarves: a head without a helmet
            2: Take("head", 1.4, STRETCHED),
            3: Take("person"),
        },
        score=_names("helmet", "head", "person"),
        note="headwear only -> whole head; stretched to a square",
    ),
    "ppe": SetRule(
        frozenset(CLASSES),
        {
            0: Take("helmet", 1.6, STRETCHED),
            2: Take("head", 1.75, STRETCHED),
            4: Take("no_vest"),
            5: Take("person"),
            7: Take("vest"),
            8: Take("machinery"),
            9: Take("vehicle"),
        },
        source_of="before .rf.",
        note="crops, several versions of a source; masks and cones dropped",
    ),
    "ppe-raw": SetRule(
        _names("machinery", "helmet"),
        {0: Take("helmet"), 2: Take("head"), 4: Take("no_vest"), 5: Take("person"), 7: Take("vest"),
         8: Take("machinery"), 9: Take("vehicle")},
        source_of="before .rf.",
        note="partial labels: persons, heads, vests and vehicles only as positives",
    ),
    "forklift": SetRule(_names("machinery", "person"), {0: Take("machinery"), 1: Take("person")}),
    "coco-cc-by": SetRule(
        _names("person", "vehicle", "machinery"),
        {0: Take("person"), 2: Take("vehicle"), 4: Take("vehicle"), 5: Take("vehicle")},
        score=_names("person", "vehicle"),
        note="no machines in COCO's pictures, so machinery is complete (none)",
    ),
}

# Simulator frames: YOLO labels in CLASSES order, everything labelled.
SIMULATOR = SetRule(frozenset(CLASSES), {i: Take(c) for i, c in enumerate(CLASSES)}, max_side=960)


def scored_classes(rule):
    return rule.labelled if rule.score is None else rule.score


def source_of(rule, stem):
    """The name that all versions of one source picture share; splits are made by it."""
    return stem.split(".rf.")[0] if rule.source_of == "before .rf." else stem


def convert(rule, rows, width, height):
    """YOLO rows [(class, cx, cy, w, h) 0..1] -> (boxes [(id, x1, y1, x2, y2) px], ignores [(ids, x1, y1, x2, y2)])."""
    boxes, ignores = [], []
    for cls, cx, cy, w, h in rows:
        what = rule.rules.get(int(cls))
        if what is None:
            continue
        x1, y1 = (cx - w / 2) * width, (cy - h / 2) * height
        bw, bh = w * width, h * height
        if isinstance(what, Ignore):
            ignores.append((tuple(ID[c] for c in what.classes), x1, y1, x1 + bw, y1 + bh))
            continue
        factor = max(1.0, min(what.extend, what.max_aspect * bw / max(bh, 1e-6)))
        boxes.append((ID[what.to], max(0, x1), max(0, y1), min(width, x1 + bw), min(height, y1 + bh * factor)))
    return boxes, ignores


# Training pictures of sets that do not label machines, looked through for machines by hand. One a line: `set/stem`, then
# `machinery:x1,y1,x2,y2` for each machine and `unclear:...` for what may or may not be one, in shares of width and height.
MACHINES = Path(__file__).parent.parent / "machines.txt"


def read_machines(text):
    """{(set, stem): [(kind, x1, y1, x2, y2) 0..1]}; a picture that is in it shows no other machine."""
    out = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, *found = line.split()
        boxes = []
        for kind, _, at in (f.partition(":") for f in found):
            try:
                x1, y1, x2, y2 = map(float, at.split(","))
            except ValueError:
                x1 = x2 = 0
            if kind not in ("machinery", "unclear") or not (0 <= x1 < x2 <= 1 and 0 <= y1 < y2 <= 1):
                raise ValueError(f"{MACHINES.name}, line {number}: {kind}:{at} is not machinery:x1,y1,x2,y2 or unclear:x1,y1,x2,y2 with shares of 0 to 1")
            boxes.append((kind, x1, y1, x2, y2))
        out[tuple(name.split("/", 1))] = boxes
    return out


@functools.cache
def machines_by_hand():
    return read_machines(MACHINES.read_text())


def with_machines(name, stem, boxes, ignores, labelled, width, height):
    """What `convert` made of a picture of set `name`, with what was found in it by hand: (boxes, ignores, classes labelled)."""
    found = machines_by_hand().get((name, stem))
    if found is None:
        return boxes, ignores, labelled
    machinery, scale = ID["machinery"], (width, height, width, height)
    placed = [(kind, *(v * of for v, of in zip(at, scale))) for kind, *at in found]
    boxes = boxes + [(machinery, *at) for kind, *at in placed if kind == "machinery"]
    ignores = ignores + [((machinery,), *at) for kind, *at in placed if kind == "unclear"]
    return boxes, ignores, labelled | {"machinery"}
