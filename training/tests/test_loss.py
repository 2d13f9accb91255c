"""The masked loss: a class that a set does not label is neither taught nor punished there."""

import torch

from ppe.loss import assign, corners, detection_loss, iou, judged_points
from ppe.model import CLASSES, decode, points

SIZE = 64
XY, STRIDES = points(SIZE, SIZE)
COUNT = len(XY)
PERSON, HELMET, VEST = CLASSES.index("person"), CLASSES.index("helmet"), CLASSES.index("vest")


def loss_of(judged, targets, seed=0):
    torch.manual_seed(seed)
    raw = (torch.randn(1, COUNT, 4) * 0.1).requires_grad_()
    logits = (torch.randn(1, COUNT, len(CLASSES)) - 3).requires_grad_()
    loss, _ = detection_loss(raw, logits, decode(raw, XY, STRIDES), targets, judged, XY, STRIDES)
    loss.backward()
    return raw.grad, logits.grad


def test_a_masked_class_gets_zero_gradient_and_the_others_do_not():
    judged = torch.ones(1, COUNT, len(CLASSES))
    judged[..., PERSON] = 0
    targets = [torch.tensor([[HELMET, 8.0, 8.0, 40.0, 40.0]])]
    _, grad = loss_of(judged, targets)
    assert grad[..., PERSON].abs().max() == 0
    assert grad[..., VEST].abs().min() > 0
    assert grad[..., HELMET].abs().min() > 0


def test_a_box_of_a_masked_class_still_counts_as_a_positive_at_its_own_points_only():
    judged = torch.ones(1, COUNT, len(CLASSES))
    judged[..., PERSON] = 0
    _, grad = loss_of(judged, [torch.tensor([[PERSON, 8.0, 8.0, 40.0, 40.0]])])
    at = grad[0, :, PERSON].nonzero()[:, 0]
    assert 1 <= len(at) <= 10
    assert ((XY[at] > 8 - 12) & (XY[at] < 40 + 12)).all()


def test_an_unlabelled_picture_region_is_silent_and_its_neighbour_is_not():
    judged = torch.ones(1, COUNT, len(CLASSES))
    left = XY[:, 0] < SIZE / 2
    judged[:, left, VEST] = 0
    _, grad = loss_of(judged, [torch.zeros(0, 5)])
    assert grad[0, left, VEST].abs().max() == 0
    assert grad[0, ~left, VEST].abs().min() > 0


def test_a_picture_without_objects_trains_no_boxes():
    raw, _ = loss_of(torch.ones(1, COUNT, len(CLASSES)), [torch.zeros(0, 5)])
    assert raw.abs().max() == 0


def test_the_judged_map_is_read_at_each_levels_own_points():
    grid = torch.zeros(1, SIZE // 8, SIZE // 8, 1)
    grid[0, :, SIZE // 16 :] = 1
    flat = judged_points(grid, SIZE, SIZE)[0, :, 0]
    assert flat.shape[0] == COUNT
    assert torch.equal(flat > 0, XY[:, 0] > SIZE / 2)


def boxes_like(truth):
    """Every point predicts the first truth exactly."""
    return truth[:1].expand(COUNT, 4)


def test_each_object_gets_points_near_it_and_no_point_serves_two():
    truth = torch.tensor([[4.0, 4.0, 30.0, 30.0], [20.0, 20.0, 60.0, 60.0]])
    boxes = corners(decode(torch.zeros(COUNT, 4), XY, STRIDES))
    at, gt, target = assign(boxes, torch.full((COUNT, len(CLASSES)), 0.01), torch.tensor([0, 2]), truth, XY, STRIDES)
    assert len(at.unique()) == len(at)
    assert set(gt.tolist()) == {0, 1}
    assert (target >= 0).all() and (target <= 1).all()
    centre = XY[at]
    assert ((centre > truth[gt, :2] - 12.1) & (centre < truth[gt, 2:] + 12.1)).all()


def test_an_object_smaller_than_a_cell_is_not_forgotten():
    truth = torch.tensor([[13.0, 13.0, 15.0, 15.0]])
    at, gt, _ = assign(boxes_like(truth), torch.full((COUNT, 7), 0.01), torch.tensor([1]), truth, XY, STRIDES)
    assert 1 <= len(at) <= 10 and (gt == 0).all()


def test_the_best_point_is_asked_for_its_own_overlap():
    truth = torch.tensor([[8.0, 8.0, 40.0, 40.0]])
    boxes = corners(decode(torch.ones(COUNT, 4) * torch.tensor([0.0, 0.0, 1.0, 1.0]), XY, STRIDES))
    _, _, target = assign(boxes, torch.full((COUNT, 7), 0.2), torch.tensor([0]), truth, XY, STRIDES)
    inside = ((XY > 8) & (XY < 40)).all(1)
    assert abs(target.max() - iou(boxes[inside], truth).max()) < 1e-3


def test_iou_of_known_boxes():
    a, b = torch.tensor([[0.0, 0.0, 2.0, 2.0]]), torch.tensor([[1.0, 0.0, 3.0, 2.0]])
    assert abs(iou(a, b).item() - 1 / 3) < 1e-5
    assert abs(iou(a, a, complete=True).item() - 1) < 1e-5
    assert iou(a, b + 50, complete=True).item() < 0
