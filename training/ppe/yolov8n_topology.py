"""The layer shapes of a YOLOv8n network with random weights, for timing only: the yardstick of the speed bars.

Written from the published architecture tables. It is never trained and detects nothing.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


def conv(c_in, c_out, k=1, s=1):
    return nn.Sequential(nn.Conv2d(c_in, c_out, k, s, k // 2), nn.SiLU())


class C2f(nn.Module):
    def __init__(self, c_in, c_out, n, shortcut):
        super().__init__()
        self.half, self.shortcut = c_out // 2, shortcut
        self.first = conv(c_in, c_out)
        self.blocks = nn.ModuleList(
            nn.Sequential(conv(self.half, self.half, 3), conv(self.half, self.half, 3)) for _ in range(n)
        )
        self.last = conv((2 + n) * self.half, c_out)

    def forward(self, x):
        parts = list(self.first(x).split(self.half, 1))
        for block in self.blocks:
            y = block(parts[-1])
            parts.append(parts[-1] + y if self.shortcut else y)
        return self.last(torch.cat(parts, 1))


class Sppf(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.first, self.last = conv(c, c // 2), conv(c * 2, c)

    def forward(self, x):
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
        return self.last(torch.cat(parts, 1))


class Yolov8nTopology(nn.Module):
    """uint8-free: float32 NCHW [N, 3, H, W] -> [N, 4 + classes, A], 16-bin box distribution and all."""

    def __init__(self, classes=80):
        super().__init__()
        self.classes = classes
        self.p2 = nn.Sequential(conv(3, 16, 3, 2), conv(16, 32, 3, 2), C2f(32, 32, 1, True))
        self.p3 = nn.Sequential(conv(32, 64, 3, 2), C2f(64, 64, 2, True))
        self.p4 = nn.Sequential(conv(64, 128, 3, 2), C2f(128, 128, 2, True))
        self.p5 = nn.Sequential(conv(128, 256, 3, 2), C2f(256, 256, 1, True), Sppf(256))
        self.t4, self.t3 = C2f(384, 128, 1, False), C2f(192, 64, 1, False)
        self.d4, self.b4 = conv(64, 64, 3, 2), C2f(192, 128, 1, False)
        self.d5, self.b5 = conv(128, 128, 3, 2), C2f(384, 256, 1, False)
        wide = max(64, classes)
        self.box = nn.ModuleList(
            nn.Sequential(conv(c, 64, 3), conv(64, 64, 3), nn.Conv2d(64, 64, 1)) for c in (64, 128, 256)
        )
        self.cls = nn.ModuleList(
            nn.Sequential(conv(c, wide, 3), conv(wide, wide, 3), nn.Conv2d(wide, classes, 1)) for c in (64, 128, 256)
        )

    def forward(self, x):
        p3 = self.p3(self.p2(x))
        p4 = self.p4(p3)
        p5 = self.p5(p4)
        t4 = self.t4(torch.cat([F.interpolate(p5, scale_factor=2.0), p4], 1))
        t3 = self.t3(torch.cat([F.interpolate(t4, scale_factor=2.0), p3], 1))
        b4 = self.b4(torch.cat([self.d4(t3), t4], 1))
        b5 = self.b5(torch.cat([self.d5(b4), p5], 1))
        boxes, scores, centres, strides = [], [], [], []
        for level, box, cls, s in zip((t3, b4, b5), self.box, self.cls, (8, 16, 32)):
            boxes.append(box(level).flatten(2))
            scores.append(cls(level).flatten(2))
            h, w = level.shape[2], level.shape[3]
            y, g = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
            centres.append(torch.stack([g, y]).reshape(2, -1))
            strides.append(torch.full((1, h * w), float(s)))
        raw = torch.cat(boxes, 2)
        dist = raw.reshape(raw.shape[0], 4, 16, -1).softmax(2)
        dist = (dist * torch.arange(16.0).reshape(1, 1, 16, 1)).sum(2)
        centre, stride = torch.cat(centres, 1), torch.cat(strides, 1)
        low, high = centre - dist[:, :2], centre + dist[:, 2:]
        return torch.cat([(low + high) / 2 * stride, (high - low) * stride, torch.cat(scores, 2).sigmoid()], 1)
