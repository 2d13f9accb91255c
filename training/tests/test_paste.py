"""Machines cut out and pasted, on pictures made here."""

import pickle
from dataclasses import replace

import cv2
import numpy as np
import pytest

from ppe import paste
from ppe.augment import GRID, Canvas
from ppe.cache import Sample, Store
from ppe.model import CLASSES
from ppe.sets import ID

BOX = (60, 50, 180, 130)


def photograph(seed=0):
    """A yellow ellipse that fills BOX, on grey noise; the ellipse's mask."""
    image = np.random.default_rng(seed).integers(90, 140, (200, 260, 3), np.uint8)
    mask = np.zeros((200, 260), np.uint8)
    cv2.ellipse(mask, (120, 90), (60, 40), 0, 0, 360, 1, -1)
    image[mask == 1] = (240, 190, 20)
    return image, mask


class Photographs(Store):
    def __init__(self, *boxes):
        super().__init__([])
        self.images = []
        for n, rows in enumerate(boxes):
            image, _ = photograph(n)
            rows = np.array(rows, np.float32).reshape(-1, 5)
            self.images.append(image)
            self.samples.append((f"{n}.u8", Sample("ppe", f"p{n}", f"p{n}", 0, *image.shape[:2], rows, [], np.ones(len(CLASSES), bool))))

    def __getitem__(self, i):
        return self.samples[i][1], self.images[i]


def canvas_of(size=256):
    judged = np.ones((size // GRID, size // GRID, len(CLASSES)), np.uint8)
    return np.full((size, size, 3), 30, np.uint8), judged


def test_what_stands_in_a_box_is_cut_out_along_its_outline():
    image, truth = photograph()
    mask = paste.cut_out(image, BOX) > 0
    truth = truth[BOX[1] : BOX[3], BOX[0] : BOX[2]] > 0
    assert mask.shape == truth.shape and (mask & truth).sum() / (mask | truth).sum() > 0.95


@pytest.mark.parametrize("box", [(0, 0, 260, 200), (0, 0, 50, 45)], ids=["all of the picture", "nothing in it"])
def test_a_box_without_an_outline_in_it_gives_nothing(box):
    image, _ = photograph()
    if box[2] < 260:
        image[: box[3] + 20, : box[2] + 20] = 100
    assert paste.cut_out(image, box) is None


def test_only_machines_that_nothing_hides_are_cut_out():
    alone, hidden = [ID["machinery"], *BOX], [ID["person"], 70, 60, 110, 120]
    store = Photographs([alone], [alone, hidden], [[ID["vehicle"], *BOX]])
    store.samples.append((store.samples[0][0], replace(store.samples[0][1], set="simulator0")))
    store.images.append(store.images[0])
    (cutout,), = paste.cut_all(store)
    assert (cutout.index, cutout.left, cutout.top, cutout.mask.shape) == (0, 60, 50, (80, 120))


def test_a_machine_is_pasted_beside_another_and_what_it_hides_is_dropped():
    store = Photographs([[ID["machinery"], *BOX]])
    pasting, rng, hidden = paste.Paste(store, paste.cut_all(store)), np.random.default_rng(2), 0
    for _ in range(60):
        canvas, judged = canvas_of()
        before = np.array([[ID["machinery"], 80, 90, 180, 170], [ID["helmet"], 150, 110, 170, 130]], np.float32)
        boxes = pasting(rng, canvas, judged, before)
        if len(boxes) == len(before) and (boxes == before).all():
            assert (canvas == 30).all()  # it would have stood mostly beyond the canvas
            continue
        id, *at = boxes[-1]
        x1, y1, x2, y2 = map(int, at)
        assert id == ID["machinery"] and 0 <= x1 < x2 <= 256 and 0 <= y1 < y2 <= 256
        changed = (canvas != 30).any(-1)
        assert changed[y1:y2, x1:x2].any() and changed.sum() == changed[y1:y2, x1:x2].sum()
        covered, stays = changed[110:130, 150:170].mean(), (boxes[:, 0] == ID["helmet"]).any()
        if abs(covered - paste.MOST_HIDDEN) > 0.15:  # the soft edge counts half
            assert stays == (covered < paste.MOST_HIDDEN)
        if not stays:
            hidden += 1
            assert judged[14:16, 19:21, ID["helmet"]].max() == 0
        assert judged[..., ID["machinery"]].min() == 1 or not (boxes[:-1, 0] == ID["machinery"]).any()
        assert judged[(y1 + y2) // 2 // GRID, (x1 + x2) // 2 // GRID, ID["person"]] == 0
    assert hidden > 5


def test_the_box_of_a_machine_ends_where_another_begins_to_hide_it_and_that_of_a_person_does_not():
    hidden = np.zeros((256, 256), bool)
    hidden[60:200, 140:220] = True  # over the right 40 of 100 columns, from above to below the box
    hidden[150:160, 100:140] = True  # and a corner that hides no whole row
    assert paste.visible_part(hidden, (80.0, 90.0, 180.0, 170.0)).tolist() == [80, 90, 140, 170]
    assert paste.visible_part(hidden, (80.5, 90.0, 130.2, 140.0)) == (80.5, 90.0, 130.2, 140.0)
    hidden = np.zeros((256, 256), bool)
    hidden[80:110, :] = True
    assert paste.visible_part(hidden, (80.0, 90.0, 180.0, 170.0)).tolist() == [80, 110, 180, 170]

    store, ended = Photographs([[ID["machinery"], *BOX]]), 0
    pasting, rng = paste.Paste(store, paste.cut_all(store)), np.random.default_rng(5)
    for _ in range(40):
        before = np.array([[ID["machinery"], 80, 90, 180, 170], [ID["person"], 100, 100, 160, 170]], np.float32)
        kept = before.copy()
        boxes = pasting(rng, *canvas_of(), before)
        assert (before == kept).all()
        people, machines = boxes[boxes[:, 0] == ID["person"]], boxes[boxes[:, 0] == ID["machinery"]]
        assert not len(people) or (people == before[1]).all()
        ended += len(machines) == 2 and (machines[0] != before[0]).any()
        assert (machines[0, 1:3] >= before[0, 1:3]).all() and (machines[0, 3:] <= before[0, 3:]).all() or len(machines) == 1
    assert ended > 5


def test_a_share_of_the_canvases_has_a_machine_pasted_in_and_the_same_seed_pastes_the_same():
    store = Photographs([[ID["machinery"], *BOX]], [])
    by_source = paste.cut_all(store)

    def machines(paste_into):
        canvas, rng = Canvas(store, np.array([0.0, 1.0]), paste=paste_into), np.random.default_rng(4)
        return [canvas.draw(rng, 128, 0.0, 0.25) for _ in range(80)]

    plain, pasted, again = machines(None), machines(paste.Paste(store, by_source)), machines(paste.Paste(store, by_source))
    assert not any(len(boxes) for _, _, boxes in plain)
    assert 0.1 < np.mean([len(boxes) for _, _, boxes in pasted]) < 0.4
    assert all((a[0] == b[0]).all() and (a[2] == b[2]).all() for a, b in zip(pasted, again))
    assert machines(paste.Paste(store, []))[0][0].shape == (128, 128, 3)


def test_cutouts_are_kept_until_pictures_or_rules_change(tmp_path, monkeypatch):
    store = Photographs([[ID["machinery"], *BOX]])
    first = paste.cutouts(store, tmp_path)
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(pickle.dumps(["as kept"]))
    assert len(first) == 1 and paste.cutouts(store, tmp_path) == ["as kept"]
    monkeypatch.setattr(paste, "FILLED", (0.0, 0.01))
    assert paste.cutouts(store, tmp_path) == [] and not kept.exists()
    monkeypatch.undo()
    store.samples[0] = ("0-of-other-contents.u8", store.samples[0][1])
    assert len(paste.cutouts(store, tmp_path)) == 1 and not kept.exists()
