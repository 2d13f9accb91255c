"""Reconciling the sets, drawing canvases and scoring, on pictures made here."""

import copy
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from ppe.augment import GRID, Canvas, letterbox
from ppe.cache import check_sources, load
from ppe.evaluate import coco_scores, nms, picked, report
from ppe.model import CLASSES
from ppe.sets import ID, SETS, convert, machines_by_hand, read_machines, scored_classes, source_of, with_machines
from ppe.train import SIMULATOR_SHARE, sample_weights

DATA = Path(__file__).parents[3] / "shared" / "datasets"


def test_every_rule_names_known_classes():
    for rule in SETS.values():
        assert rule.labelled <= set(CLASSES)
        assert scored_classes(rule) <= rule.labelled


def test_helmet_only_boxes_grow_downwards_to_the_whole_head():
    boxes, _ = convert(SETS["construction-safety"], [(0, 0.5, 0.5, 0.1, 0.08)], 400, 400)
    (cls, x1, y1, x2, y2), = boxes
    assert CLASSES[cls] == "helmet"
    assert (x1, y1, x2) == pytest.approx((180, 184, 220))
    assert (y2 - y1) / 32 == pytest.approx(1.6)


def test_a_box_that_already_reaches_the_chin_stays():
    boxes, _ = convert(SETS["construction-safety"], [(0, 0.5, 0.5, 0.1, 0.16)], 400, 400)
    assert boxes[0][4] - boxes[0][2] == pytest.approx(64)


def test_a_person_box_of_hardhat_workers_hides_heads_and_is_no_object():
    boxes, ignores = convert(SETS["hardhat-workers"], [(2, 0.5, 0.5, 0.2, 0.4)], 100, 100)
    assert boxes == []
    assert ID["head"] in ignores[0][0]


def test_versions_of_one_source_share_a_name():
    assert source_of(SETS["ppe"], "a_jpg.rf.01_tl") == source_of(SETS["ppe"], "a_jpg.rf.02_tl")


def test_machines_found_by_hand_join_what_the_set_says():
    found = machines_by_hand()
    assert {name for name, _ in found} == {"hardhat-workers", "construction-safety"}
    assert all("machinery" not in SETS[name].labelled for name, _ in found)
    (name, stem), boxes = next((k, v) for k, v in found.items() if {b[0] for b in v} == {"machinery", "unclear"})
    helmet, hidden = (ID["helmet"], 1, 2, 3, 4), ((ID["head"],), 5, 6, 7, 8)
    new, ignores, labelled = with_machines(name, stem, [helmet], [hidden], SETS[name].labelled, 200, 100)
    machines = [(ID["machinery"], x1 * 200, y1 * 100, x2 * 200, y2 * 100) for kind, x1, y1, x2, y2 in boxes if kind == "machinery"]
    assert new == [helmet, *machines] and ignores[0] == hidden and ignores[1][0] == (ID["machinery"],)
    assert labelled == SETS[name].labelled | {"machinery"}
    assert with_machines(name, "another", [helmet], [hidden], SETS[name].labelled, 200, 100) == ([helmet], [hidden], SETS[name].labelled)


@pytest.mark.parametrize("box", ["machine:0,0,1,1", "machinery:0,0,1", "unclear:0.5,0,0.4,1", "machinery:0,0,1.2,1", "machinery"])
def test_a_machine_that_is_none_is_told_by_its_line(box):
    with pytest.raises(ValueError, match="machines.txt, line 2: (mach|unclear)"):
        read_machines(f"ppe/a\nppe/b machinery:0,0,1,1 {box}\n")


@pytest.mark.skipif(not (DATA / "hardhat-workers").is_dir(), reason="the data sets are not there")
def test_machines_found_by_hand_are_on_training_pictures():
    stems = {split: {(name, p.stem) for name in SETS for p in (DATA / name / split / "images").glob("*")} for split in ("train", "valid")}
    assert machines_by_hand().keys() <= stems["train"] and not machines_by_hand().keys() & stems["valid"]


@pytest.fixture()
def store(tmp_path):
    """Two hardhat-workers pictures (persons not labelled) with one helmet each."""
    rng = np.random.default_rng(0)
    for split in ("train", "valid"):
        folder = tmp_path / "hardhat-workers" / split
        (folder / "images").mkdir(parents=True), (folder / "labels").mkdir()
        for i in range(2):
            image = rng.integers(0, 255, (120, 160, 3), np.uint8)
            cv2.imwrite(str(folder / "images" / f"{split}{i}.jpg"), image)
            (folder / "labels" / f"{split}{i}.txt").write_text("0 0.5 0.5 0.25 0.5\n2 0.2 0.5 0.2 0.5\n")
    return load(tmp_path, tmp_path / "cache", "train")


def test_changed_labels_are_read_again_and_nothing_old_is_kept(store, tmp_path):
    label = tmp_path / "hardhat-workers" / "train" / "labels" / "train0.txt"
    again = load(tmp_path, tmp_path / "cache", "train")
    assert len(list((tmp_path / "cache").glob("*.u8"))) == 1
    label.write_text("0 0.5 0.5 0.25 0.5\n0 0.2 0.2 0.1 0.1\n")
    changed = load(tmp_path, tmp_path / "cache", "train")
    assert len(again.samples[0][1].boxes) == 1 and len(changed.samples[0][1].boxes) == 2
    assert len(list((tmp_path / "cache").glob("*.u8"))) == 1


def test_a_simulator_folder_that_is_none_is_an_error(store, tmp_path):
    with pytest.raises(SystemExit, match="frame-183.*no train/images"):
        load(tmp_path, tmp_path / "cache", "train", [tmp_path / "frame-183"])


def test_a_file_that_is_no_picture_is_named(store, tmp_path, capsys):
    (tmp_path / "hardhat-workers" / "train" / "images" / "notes.jpg").write_text("none")
    assert len(load(tmp_path, tmp_path / "cache", "train")) == 2
    assert "notes.jpg" in capsys.readouterr().out


def test_canvases_judge_labelled_classes_on_pictures_and_all_on_bare_canvas(store):
    canvas = Canvas(store, np.ones(len(store)))
    rng = np.random.default_rng(1)
    for mosaic in (0.0, 1.0):
        for _ in range(20):
            image, judged, boxes = canvas.draw(rng, 128, mosaic)
            assert image.shape == (128, 128, 3) and judged.shape == (128 // GRID, 128 // GRID, len(CLASSES))
            assert (boxes[:, 3] > boxes[:, 1]).all() and (boxes[:, 1:] >= 0).all() and (boxes[:, 1:] <= 128).all()
            assert judged[..., ID["vest"]].min() == 0
    blank = canvas.blank(128)[1]
    assert blank.min() == 1


def test_a_head_inside_an_ignored_person_is_not_judged(store):
    canvas = Canvas(store, np.ones(len(store)))
    _, judged, _ = canvas.single(np.random.default_rng(2), 160, (1.0, 1.0001))
    assert judged[..., ID["head"]].min() == 0
    assert judged[..., ID["helmet"]].max() == 1


def test_letterbox_keeps_the_aspect_and_reports_its_transform():
    out, (scale, left, top) = letterbox(np.zeros((100, 200, 3), np.uint8), 64, 64)
    assert out.shape == (64, 64, 3) and scale == 0.32 and (left, top) == (0, 16)
    assert (out[:16] == 114).all() and (out[16:48] == 0).all()


def test_suppression_keeps_the_better_of_two_and_both_of_two_apart():
    boxes = np.array([[0, 0, 10, 10], [1, 0, 11, 10], [50, 50, 60, 60]], float)
    assert nms(boxes, np.array([0.5, 0.9, 0.3]), 0.5).tolist() == [1, 2]


def test_perfect_boxes_score_one_and_unlabelled_classes_are_not_scored(store):
    found = []
    for _, s in store.samples:
        boxes = s.boxes[:, 1:]
        found.append((np.concatenate([boxes, boxes]), np.array([0.9, 0.8]), np.array([ID["helmet"], ID["person"]])))
    scores = coco_scores(store, found, ["hardhat-workers"])
    assert set(scores) == {"helmet"}
    assert scores["helmet"]["ap50"] == pytest.approx(1) and scores["helmet"]["map"] == pytest.approx(1)


def test_simulator_frames_are_scored_apart_from_photographs(store):
    photo = store.samples[0]
    both = copy.copy(store)
    both.samples = store.samples + [(photo[0], replace(photo[1], set="simulator0"))]
    found = [(s.boxes[:, 1:], np.full(len(s.boxes), 0.9), s.boxes[:, 0].astype(int)) for _, s in both.samples]
    result = report(both, found, True)
    assert result["all"] == report(store, found[:-1], False)["all"]
    assert "simulator0" in result["sets"]


def test_picked_turns_points_into_corner_boxes():
    output = np.zeros((11, 3), np.float32)
    output[:4, 1] = (20, 30, 10, 8)
    output[4 + 2, 1] = 0.7
    boxes, scores, ids = picked(output)
    assert boxes.tolist() == [[15, 26, 25, 34]] and ids.tolist() == [2] and scores[0] == pytest.approx(0.7)


def test_a_store_travels_to_loader_processes_without_its_pixels(store):
    _, before = store[0]
    path = store.samples[0][0]
    travelled = pickle.dumps(store)
    assert store.maps and len(travelled) < os.path.getsize(path)
    assert np.array_equal(pickle.loads(travelled)[0][1], before)


def test_no_source_is_on_both_sides(tmp_path, store):
    assert check_sources(store, load(tmp_path, tmp_path / "cache", "valid")) == []


def test_simulator_frames_get_their_share_of_the_draws_however_many_there_are(store):
    def weights(frames):
        photo = store.samples[0]
        frame = (photo[0], replace(photo[1], set="simulator0", source="f"))
        mixed = copy.copy(store)
        mixed.samples = store.samples + [frame] * frames
        w = sample_weights(mixed)
        return w[len(store.samples) :].sum() / w.sum()

    assert weights(1) == pytest.approx(SIMULATOR_SHARE) and weights(7) == pytest.approx(SIMULATOR_SHARE)


def test_emphasis_multiplies_the_draws_of_machines_and_of_nothing_else(store):
    photo = store.samples[0]
    machine, helmet = photo[1].boxes[:1].copy(), photo[1].boxes[:1].copy()
    machine[0, 0], helmet[0, 0] = CLASSES.index("machinery"), CLASSES.index("helmet")
    pair = copy.copy(store)
    pair.samples = [(photo[0], replace(photo[1], source=name, boxes=box)) for name, box in (("a", machine), ("b", helmet))]
    once, twice = sample_weights(pair), sample_weights(pair, emphasis=2.0)
    assert twice[0] == pytest.approx(2 * once[0]) and twice[1] == once[1]


def test_pictures_without_machines_are_drawn_often_where_machines_are_labelled(store):
    everything = np.ones(len(CLASSES), bool)

    def weight(**changes):
        photo = store.samples[0]
        pair = copy.copy(store)
        other = replace(photo[1], source="b", labelled=everything)
        pair.samples = [(photo[0], replace(photo[1], source="a", **changes)), (photo[0], other)]
        return sample_weights(pair)[0]

    helmets = store.samples[0][1].boxes
    empty = helmets[:0]
    assert set(helmets[:, 0]) <= {0, 1, 2}
    assert weight(labelled=everything, boxes=empty) > weight(labelled=everything) > weight()


def test_a_set_decoded_by_one_process_is_found_by_the_next():
    code = "from ppe.cache import fingerprint; from ppe.sets import SETS; print([fingerprint(r) for r in SETS.values()])"
    root = Path(__file__).parents[1]
    said = {
        subprocess.run([sys.executable, "-c", code], cwd=root, env={**os.environ, "PYTHONHASHSEED": seed}, check=True,
                       capture_output=True, text=True).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1 and len(set(said.pop().split(","))) > 1
