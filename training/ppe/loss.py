"""Task-aligned assignment and the masked loss, written from the published formulas (TOOD: score^a * IoU^b; CIoU)."""

import math

import torch
import torch.nn.functional as F

TOP = 10
ALPHA, BETA = 0.5, 6.0
CENTRE_STRIDES = 1.5  # points of the finest level this near to a box's centre are candidates too: tiny boxes
BOX_GAIN, CLS_GAIN = 5.0, 1.0


def corners(box):
    return torch.cat([box[..., :2] - box[..., 2:] / 2, box[..., :2] + box[..., 2:] / 2], -1)


def iou(a, b, complete=False):
    """IoU of boxes [..., 4] as corners; with `complete`, CIoU."""
    eps = 1e-7
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    inter = (high - low).clamp(min=0).prod(-1)
    wh_a, wh_b = (a[..., 2:] - a[..., :2]).clamp(min=eps), (b[..., 2:] - b[..., :2]).clamp(min=eps)
    value = inter / (wh_a.prod(-1) + wh_b.prod(-1) - inter + eps)
    if not complete:
        return value
    hull = torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])
    apart = ((a[..., :2] + a[..., 2:] - b[..., :2] - b[..., 2:]) ** 2).sum(-1) / 4
    v = 4 / math.pi**2 * (torch.atan(wh_b[..., 0] / wh_b[..., 1]) - torch.atan(wh_a[..., 0] / wh_a[..., 1])) ** 2
    with torch.no_grad():
        alpha = v / (v - value + 1 + eps)
    return value - apart / ((hull**2).sum(-1) + eps) - alpha * v


@torch.no_grad()
def assign(boxes, scores, gt_ids, gt_boxes, xy, strides):
    """One picture. boxes [A, 4] corners, scores [A, C] 0..1, gt_ids [G] int64, gt_boxes [G, 4] corners.

    Returns (points [P] indices, gt [P] index of the object of each, target [P] in 0..1). Each point serves at most
    one object; each object with a candidate gets at most TOP points.
    """
    if len(gt_ids) == 0:
        empty = torch.zeros(0, dtype=torch.long)
        return empty, empty, torch.zeros(0)
    low, high = xy[None] - gt_boxes[:, None, :2], gt_boxes[:, None, 2:] - xy[None]
    inside = torch.minimum(low, high).amin(-1) > 0
    centre = (gt_boxes[:, :2] + gt_boxes[:, 2:]) / 2
    near = (xy[None] - centre[:, None]).abs().amax(-1) < CENTRE_STRIDES * strides[:, 0]
    candidates = inside | (near & (strides[:, 0] == strides.min()))
    overlap = iou(gt_boxes[:, None], boxes[None]).clamp(min=0) * candidates
    metric = (scores[:, gt_ids].T + 1e-9) ** ALPHA * overlap**BETA
    # a tiny floor by distance keeps objects alive that no predicted box touches yet
    distance = ((xy[None] - centre[:, None]) / strides[None]).pow(2).sum(-1)
    ranked = torch.where(candidates, metric + 1e-12 / (1 + distance), torch.zeros_like(metric))
    top = ranked.topk(min(TOP, ranked.shape[1]), 1)
    chosen = torch.zeros_like(candidates).scatter_(1, top.indices, top.values > 0)
    # a point wanted by several objects goes to the one it overlaps most
    contested = chosen.sum(0) > 1
    if contested.any():
        rank = torch.where(chosen, overlap + 1e-9, torch.full_like(overlap, -1.0))
        best = rank[:, contested].argmax(0)
        chosen[:, contested] = F.one_hot(best, len(gt_ids)).T.bool()
    gt, points = chosen.nonzero(as_tuple=True)
    best_metric = (metric * chosen).amax(1)
    best_overlap = (overlap * chosen).amax(1)
    target = metric[gt, points] / (best_metric[gt] + 1e-12) * best_overlap[gt]
    return points, gt, target


def judged_points(judged, height, width):
    """The map [B, H/8, W/8, C] -> per point [B, A, C]: each level reads the cell under its point centre."""
    out = []
    for s in (1, 2, 4):
        out.append(judged[:, s // 2 :: s, s // 2 :: s].flatten(1, 2))
    return torch.cat(out, 1)


def detection_loss(raw, logits, decoded, targets, judged, xy, strides):
    """raw/decoded [B, A, 4] (decoded = cx, cy, w, h px), logits [B, A, C], targets: list of float [G, 5]
    (id, x1, y1, x2, y2 px), judged [B, A, C] 0/1. Returns (loss, parts).

    Where `judged` is 0, a class costs nothing and passes no gradient, unless the point was given to an object of
    that very class.
    """
    boxes = corners(decoded)
    scores = logits.detach().sigmoid()
    want = torch.zeros_like(logits)
    weight = judged.to(logits.dtype).clone()
    picked, truth, soft = [], [], []
    for b, t in enumerate(targets):
        points, gt, target = assign(boxes[b].detach(), scores[b], t[:, 0].long(), t[:, 1:], xy, strides)
        if len(points) == 0:
            continue
        ids = t[gt, 0].long()
        want[b, points, ids] = target
        weight[b, points, ids] = 1.0
        picked.append(boxes[b, points])
        truth.append(t[gt, 1:])
        soft.append(target)
    total = want.sum().clamp(min=1.0)
    cls = (F.binary_cross_entropy_with_logits(logits, want, reduction="none") * weight).sum() / total
    if picked:
        soft = torch.cat(soft)
        # unborn objects (no overlap yet) still pull on their boxes
        box = ((1 - iou(torch.cat(picked), torch.cat(truth), True)) * soft.clamp(min=0.05)).sum() / total
    else:
        box = raw.sum() * 0
    loss = CLS_GAIN * cls + BOX_GAIN * box
    return loss, {"cls": cls.item(), "box": box.item(), "positive": total.item()}
