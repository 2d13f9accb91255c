"""The detector: a plain conv + ReLU network with a one-conv decoupled-free head at strides 8, 16 and 32, and beside its
backbone a context path that knows ImageNet (context.py).

Made for ONNX Runtime's CPU kernels: every activation is ReLU (so that conv + ReLU fuses in fp32 and in int8 QDQ
form), every heavy layer of the main path is a dense 3x3 or 1x1 convolution, and decoding is one add, one exp and two multiplications
on [N, 4, A]. Written from the published ideas (CSP blocks, path aggregation, anchor-free points); no foreign code.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

from .context import CHANNELS as CONTEXT_CHANNELS
from .context import Context

CLASSES = ("helmet", "head", "person", "vest", "no_vest", "machinery", "vehicle")
EXCLUSIVE = (("helmet", "head"), ("vest", "no_vest"))  # a head or a torso has one of each pair
STRIDES = (8, 16, 32)
# Widths of the backbone after strides 2, 4, 8, 16, 32, and of the neck. Chosen by latency, see README.md.
WIDTHS = (16, 32, 64, 128, 192)
NECK = 64
CONTEXT = (48, 128)  # channels that the context path adds at strides 16 and 32
MAX_LOG_SIZE = 6.0


class ConvBnRelu(nn.Sequential):
    def __init__(self, c_in, c_out, kernel=3, stride=1):
        super().__init__(
            nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(c_out, eps=1e-3, momentum=0.03),
            nn.ReLU(inplace=True),
        )


class Residual(nn.Module):
    """Two 3x3 convolutions with a short cut. The sum is taken after ReLU, so its int8 zero point stays 0."""

    def __init__(self, channels):
        super().__init__()
        self.a = ConvBnRelu(channels, channels)
        self.b = ConvBnRelu(channels, channels)

    def forward(self, x):
        return x + self.b(self.a(x))


class Csp(nn.Module):
    """Half of the channels go through residual blocks, every stage of them is kept, one 1x1 mixes the lot."""

    def __init__(self, c_in, c_out, blocks):
        super().__init__()
        half = c_out // 2
        self.left = ConvBnRelu(c_in, half, 1)
        self.right = ConvBnRelu(c_in, half, 1)
        self.blocks = nn.ModuleList(Residual(half) for _ in range(blocks))
        self.mix = ConvBnRelu(half * (2 + blocks), c_out, 1)

    def forward(self, x):
        parts = [self.left(x), self.right(x)]
        for block in self.blocks:
            parts.append(block(parts[-1]))
        return self.mix(torch.cat(parts, 1))


class PoolPyramid(nn.Module):
    """Three chained 5x5 max pools: context of the whole picture for the coarsest level."""

    def __init__(self, channels):
        super().__init__()
        self.reduce = ConvBnRelu(channels, channels // 2, 1)
        self.mix = ConvBnRelu(channels * 2, channels, 1)

    def forward(self, x):
        parts = [self.reduce(x)]
        for _ in range(3):
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
        return self.mix(torch.cat(parts, 1))


class Backbone(nn.Module):
    def __init__(self, widths=WIDTHS):
        super().__init__()
        w2, w4, w8, w16, w32 = widths
        self.stem = nn.Sequential(ConvBnRelu(3, w2, 3, 2), ConvBnRelu(w2, w4, 3, 2))
        self.stage8 = nn.Sequential(ConvBnRelu(w4, w8, 3, 2), Csp(w8, w8, 1))
        self.context = Context()
        self.context16 = ConvBnRelu(CONTEXT_CHANNELS[0], CONTEXT[0], 1)
        self.context32 = ConvBnRelu(CONTEXT_CHANNELS[1], CONTEXT[1], 1)
        self.context_drop = 0.0  # share of the pictures of a training batch that go without context, to the nearest picture
        self.step16 = ConvBnRelu(w8, w16, 3, 2)
        self.stage16 = Csp(w16 + CONTEXT[0], w16, 1)
        self.step32 = ConvBnRelu(w16, w32, 3, 2)
        self.stage32 = nn.Sequential(Csp(w32 + CONTEXT[1], w32, 1), PoolPyramid(w32))

    def known(self, x):
        """What the context path adds at strides 16 and 32: nothing (0) to the pictures of a training batch that go without, for which
        it is not computed either."""
        without = round(self.context_drop * len(x)) if self.training else 0
        kept = torch.randperm(len(x), device=x.device)[without:] if without else None
        c16, c32 = self.context(x if kept is None else x[kept].contiguous(memory_format=torch.channels_last))
        added = self.context16(c16), self.context32(c32)
        if kept is None:
            return added
        return [c.new_zeros(len(x), *c.shape[1:]).to(memory_format=torch.channels_last).index_copy(0, kept, c) for c in added]

    def forward(self, x):
        p8 = self.stage8(self.stem(x))
        c16, c32 = self.known(x)
        p16 = self.stage16(torch.cat([self.step16(p8), c16], 1))
        return p8, p16, self.stage32(torch.cat([self.step32(p16), c32], 1))


class Neck(nn.Module):
    """Top-down, then bottom-up; all levels leave with `channels` channels."""

    def __init__(self, widths=WIDTHS, channels=NECK):
        super().__init__()
        self.lateral8 = ConvBnRelu(widths[2], channels, 1)
        self.lateral16 = ConvBnRelu(widths[3], channels, 1)
        self.lateral32 = ConvBnRelu(widths[4], channels, 1)
        self.down16 = Csp(channels * 2, channels, 1)
        self.down8 = Csp(channels * 2, channels, 1)
        self.step16 = ConvBnRelu(channels, channels, 3, 2)
        self.up16 = Csp(channels * 2, channels, 1)
        self.step32 = ConvBnRelu(channels, channels, 3, 2)
        self.up32 = Csp(channels * 2, channels * 2, 1)

    def forward(self, p8, p16, p32):
        l32 = self.lateral32(p32)
        t16 = self.down16(torch.cat([F.interpolate(l32, scale_factor=2.0), self.lateral16(p16)], 1))
        t8 = self.down8(torch.cat([F.interpolate(t16, scale_factor=2.0), self.lateral8(p8)], 1))
        b16 = self.up16(torch.cat([self.step16(t8), t16], 1))
        return t8, b16, self.up32(torch.cat([self.step32(b16), l32], 1))


class LevelHead(nn.Module):
    """One shared 3x3, then a 1x1 each for the box (4 numbers per point) and the classes."""

    def __init__(self, c_in, channels, classes, stride):
        super().__init__()
        self.shared = ConvBnRelu(c_in, channels)
        self.box_stem = ConvBnRelu(channels, channels, 1)
        self.cls_stem = ConvBnRelu(channels, channels, 1)
        self.box = nn.Conv2d(channels, 4, 1)
        self.cls = nn.Conv2d(channels, classes, 1)
        nn.init.zeros_(self.box.bias)
        nn.init.normal_(self.box.weight, std=0.01)
        with torch.no_grad():
            self.box.bias[2:] = 1.2  # about 3.3 strides wide and high at the start
        nn.init.normal_(self.cls.weight, std=0.01)
        nn.init.constant_(self.cls.bias, -4.6)  # a score of 0.01 everywhere

    def forward(self, x):
        x = self.shared(x)
        return self.box(self.box_stem(x)), self.cls(self.cls_stem(x))


class Detector(nn.Module):
    """Pixels in 0..1, NCHW, sides a multiple of 32 -> raw box numbers [N, A, 4] and class logits [N, A, 7].

    A counts the points of all levels, finest first, row by row. `decode` turns raw boxes into pixels.
    """

    def __init__(self, widths=WIDTHS, neck=NECK, classes=len(CLASSES)):
        super().__init__()
        self.backbone = Backbone(widths)
        self.neck = Neck(widths, neck)
        ins = (neck, neck, neck * 2)
        self.heads = nn.ModuleList(LevelHead(c, neck, classes, s) for c, s in zip(ins, STRIDES))
        for m in self.modules():
            if isinstance(m, nn.Conv2d) and m.bias is None:
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def levels(self, images):
        return [head(x) for head, x in zip(self.heads, self.neck(*self.backbone(images)))]

    def forward(self, images):
        boxes, classes = zip(*self.levels(images))
        flat = lambda xs: torch.cat([x.flatten(2) for x in xs], 2).transpose(1, 2)
        return flat(boxes).float(), flat(classes).float()


def points(height, width, device="cpu"):
    """Grid cell centres in pixels [A, 2] and the stride of each [A, 1], in the order of `Detector`."""
    xy, strides = [], []
    for s in STRIDES:
        y, x = torch.meshgrid(torch.arange(height // s), torch.arange(width // s), indexing="ij")
        xy.append((torch.stack([x, y], -1).reshape(-1, 2) + 0.5) * s)
        strides.append(torch.full((xy[-1].shape[0], 1), float(s)))
    return torch.cat(xy).to(device), torch.cat(strides).to(device)


def decode(raw, xy, strides):
    """Raw box numbers -> (cx, cy, w, h) in pixels: centre = point + t * stride, size = exp(t) * stride."""
    centre = xy + raw[..., :2] * strides
    size = raw[..., 2:].clamp(max=MAX_LOG_SIZE).exp() * strides
    return torch.cat([centre, size], -1)


class Deployed(nn.Module):
    """The exported graph: uint8 NHWC pictures -> [N, 4 + classes, A]: cx, cy, w, h in input pixels, scores 0..1.

    The division by 255 is inside the first convolution (exactly: its weights are the trained ones / 255; the padding
    is 0 in both forms). Call on a fused copy made by `fuse`.
    """

    def __init__(self, detector):
        super().__init__()
        self.detector = detector

    def forward(self, images):
        x = images.permute(0, 3, 1, 2).float()
        out = []
        for (box, cls), s in zip(self.detector.levels(x), STRIDES):
            h, w = box.shape[2], box.shape[3]
            grid_x = (torch.arange(w, dtype=box.dtype, device=box.device) + 0.5).reshape(1, 1, 1, w)
            grid_y = (torch.arange(h, dtype=box.dtype, device=box.device) + 0.5).reshape(1, 1, h, 1)
            cx = box[:, 0:1] + grid_x
            cy = box[:, 1:2] + grid_y
            size = box[:, 2:4].clamp(max=MAX_LOG_SIZE).exp()
            boxes = torch.cat([cx, cy, size], 1) * float(s)
            out.append(torch.cat([boxes, cls.sigmoid()], 1).flatten(2))
        return torch.cat(out, 2)


def fuse(detector):
    """A float32 evaluation copy with batch norms folded into their convolutions and 1/255 into the first."""
    import copy

    model = copy.deepcopy(detector).eval().float()
    for module in model.modules():
        if isinstance(module, ConvBnRelu) and isinstance(module[1], nn.BatchNorm2d):
            module[0] = torch.nn.utils.fuse_conv_bn_eval(module[0], module[1])
            module[1] = nn.Identity()
    with torch.no_grad():
        model.backbone.stem[0][0].weight.div_(255.0)
        model.backbone.context.stem.weight.div_(255.0)
    return model
