import numpy as np

from ppe.cache import Sample
from ppe.failures import judge
from ppe.model import CLASSES
from ppe.sets import ID


def sample(boxes, ignores=(), name="hardhat-workers"):
    return Sample(name, "a", "a", 0, 100, 100, np.array(boxes, np.float32).reshape(-1, 5), list(ignores),
                  np.ones(len(CLASSES), bool))


def found(*rows):
    return np.array([r[2] for r in rows], float), np.array([r[1] for r in rows]), np.array([ID[r[0]] for r in rows])


def test_right_false_and_missed_boxes_are_told_apart():
    truth = sample([[ID["helmet"], 0, 0, 20, 20], [ID["head"], 50, 50, 70, 70]])
    right, false, missed = judge(
        truth,
        found(("helmet", 0.9, (0, 0, 20, 19)), ("helmet", 0.8, (50, 50, 70, 70)), ("person", 0.9, (0, 0, 9, 9))),
        0.5,
    )
    assert [CLASSES[r[0]] for r in right] == ["helmet"]
    assert [(CLASSES[r[0]], r[2]) for r in false] == [("helmet", "head")]  # persons are not labelled in this set
    assert [CLASSES[r[0]] for r in missed] == ["head"]


def test_boxes_inside_an_ignore_region_are_neither_right_nor_false():
    truth = sample([], [((ID["head"],), 0, 0, 50, 50)])
    right, false, _ = judge(truth, found(("head", 0.9, (10, 10, 20, 20)), ("head", 0.9, (80, 80, 90, 90))), 0.5)
    assert right == [] and [f[2] for f in false] == ["background"]
