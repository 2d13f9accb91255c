import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from ppe.clips import label_box, match, measure, read_head, score, truth_of
from ppe.evaluate import onnx_runner
from ppe.export import VIDEO, VIDEO_SIZE
from ppe.model import CLASSES
from ppe.sets import ID

MODELS = Path(__file__).parents[2] / "models"
GAP = 0.02  # the most of the mean F1 that int8 may lose


def thing(name, box, visible=1.0, seen="box"):
    return {"id": "x", "class": name, "box": box, "visibleBox": box if seen == "box" else seen, "visible": visible}


def test_a_label_follows_the_simulators_rule():
    assert label_box(thing("head", [0, 0, 20, 20])) == [0, 0, 20, 20]
    assert label_box(thing("head", [0, 0, 20, 20], 0.5, [0, 0, 20, 12])) == [0, 0, 20, 12]
    assert label_box(thing("head", [0, 0, 20, 20], 0.2)) is None
    assert label_box(thing("head", [0, 0, 20, 20], 0, None)) is None
    assert label_box(thing("head", [0, 0, 7, 20])) is None
    assert label_box(thing("machinery", [0, 0, 900, 500], 0.07, [0, 0, 200, 60])) == [0, 0, 200, 60]


def test_boxes_on_things_too_hidden_to_label_are_left_out_and_second_boxes_are_false():
    truth = truth_of({"objects": [thing("head", [0, 0, 20, 20]), thing("person", [50, 0, 90, 90], 0.1)]})
    boxes = np.array([[0, 0, 20, 19], [1, 0, 20, 20], [50, 0, 90, 90], [300, 0, 320, 20]], float)
    ids = np.array([ID["head"], ID["head"], ID["person"], ID["head"]])
    rows, objects = match((boxes, np.array([0.9, 0.8, 0.9, 0.1]), ids), truth, 0.3)
    assert [(CLASSES[c], right) for c, _, right in rows] == [("head", True), ("head", False)]
    assert objects[ID["head"]] == 1 and objects[ID["person"]] == 0


def test_a_head_is_read_like_the_pipeline_reads_it():
    output = np.zeros((4 + len(CLASSES), 4), np.float32)
    output[:4] = np.array([[10, 10, 20, 20], [10, 10, 20, 20], [10, 11, 20, 20], [100, 10, 20, 20]]).T
    output[4 + ID["helmet"]] = 0.6, 0, 0, 0.4
    output[4 + ID["head"]] = 0.5, 0.55, 0, 0.7  # the second one overlaps a helmet
    output[4 + ID["person"]] = 0, 0, 0.9, 0
    boxes, scores, ids = read_head(output)
    assert sorted((CLASSES[c], round(float(s), 2)) for c, s in zip(ids, scores)) == [("head", 0.7), ("helmet", 0.6), ("person", 0.9)]
    assert boxes[list(ids).index(ID["person"])].tolist() == [0, 1, 20, 21]


def test_a_clip_is_read_frame_by_frame_and_scored(tmp_path):
    writer = cv2.VideoWriter(str(tmp_path / "a.mp4"), cv2.VideoWriter_fourcc(*"mp4v"), 25, (128, 64))
    for k in range(4):
        picture = np.zeros((64, 128, 3), np.uint8)
        picture[16:48, 16 + 16 * k : 48 + 16 * k] = 255
        writer.write(picture)
    writer.release()
    frames = [{"frame": k, "faults": ["black"] if k == 2 else [], "objects": [thing("head", [16 + 16 * k, 16, 48 + 16 * k, 48])]}
              for k in range(4)]
    (tmp_path / "a.truth.json").write_text(json.dumps({"frames": frames}))

    def run(x):  # boxes the white square, but only in its first two places
        bright = x[0, :, :, 0] > 180
        ys, xs = np.nonzero(bright)
        out = np.zeros((1, 4 + len(CLASSES), 1), np.float32)
        if xs.min() < 20:
            out[0, :4, 0] = (xs.min() + xs.max()) / 2, (ys.min() + ys.max()) / 2, np.ptp(xs), np.ptp(ys)
            out[0, 4 + ID["head"], 0] = 0.8
        return out

    found = measure(run, [tmp_path / "a.mp4"], (64, 64))
    precision, recall, objects = score(found["a"], 0.5)["head"]
    assert (precision, objects) == (1.0, 3) and abs(recall - 2 / 3) < 1e-9


@pytest.mark.skipif(not (MODELS / VIDEO).is_dir(), reason="no published models beside this recipe")
def test_int8_for_video_finds_on_the_demo_clips_what_fp32_finds():
    clips, f1 = sorted((MODELS.parent / "pipelines/demo/clips").glob("*.mp4")), {}
    for name in ("ppe_detect", VIDEO):
        frames = measure(onnx_runner(MODELS / name / "1" / "model.onnx", 2), clips, VIDEO_SIZE, stride=10)
        scores = score([frame for frames in frames.values() for frame in frames], 0.3)
        assert len(scores) == len(CLASSES)
        f1[name] = np.mean([2 * p * r / (p + r) for p, r, _ in scores.values()])
    assert f1["ppe_detect"] - f1[VIDEO] <= GAP, f1
