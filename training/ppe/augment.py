"""Training pictures: mosaic or single canvas, colour, blur, compression, night; and the mask of judged points.

A canvas carries a map [H/8, W/8, classes] of uint8: 1 where the absence of a box means background. Each picture of a
mosaic brings its set's labelled classes, ignore boxes are cut out of it, and bare canvas is background for all.
"""

import cv2
import numpy as np
from PIL import Image

from .model import CLASSES

FILL = 114
GRID = 8
USUAL_SIDE = 416  # smaller pictures (crops) are first enlarged to this, as letterboxing will do
SIMULATOR_WIDTHS = (420, 960)  # simulator frames are drawn as wide as cameras' frames reach the network: heads are a few pixels
MOST_ENLARGED = 1.1  # of a simulator frame: blurred heads teach little
CLOSE = 0.15  # share of single pictures that are crops: machines and people larger than the picture
# Drawn from for every picture. Cameras' frames are scaled by ffmpeg bicubically, which averages over all pixels when it makes a picture
# smaller, as Pillow does; OpenCV's `linear` takes the nearest four. Trained on `linear` alone, heads lost two to four points on cameras.
SCALINGS = ("bicubic", "bicubic", "bicubic", "bilinear", "linear")
PILLOW = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}
PAIRED = 0.5  # share of the canvases with a pasted machine into which another is pasted, beside the first
MIN_VISIBLE = 0.3  # a box with less of its area left after cropping is dropped, and its place is not judged


def affine(rng, w, h, scale):
    """Mirror and scale (a little anisotropic): 2x3 matrix, and the new size in whole pixels."""
    wide = max(8, int(w * scale * np.exp(rng.uniform(-0.12, 0.12))))
    high = max(8, int(h * scale * np.exp(rng.uniform(-0.12, 0.12))))
    m = np.array([[wide / w, 0, 0], [0, high / h, 0]], np.float32)
    if rng.random() < 0.5:
        m[0, 0], m[0, 2] = -m[0, 0], wide
    return m, wide, high


def scaled(image, region, size, scaling):
    """`region` (x1, y1, x2, y2) of the picture, which may end inside a pixel, as a picture of `size` (width, height)."""
    if scaling == "linear":
        x1, y1, x2, y2 = region
        sx, sy = size[0] / (x2 - x1), size[1] / (y2 - y1)
        m = np.array([[sx, 0, -x1 * sx + (sx - 1) / 2], [0, sy, -y1 * sy + (sy - 1) / 2]])  # of centres of pixels
        return cv2.warpAffine(image, m, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    # Pillow copies all that it is given: only the pixels that its filter reads, two outputs' worth on every side, are.
    x1, y1, x2, y2 = region
    around_x, around_y = (2 * max(1, (b - a) / n) + 1 for a, b, n in ((x1, x2, size[0]), (y1, y2, size[1])))
    left, top = max(0, int(x1 - around_x)), max(0, int(y1 - around_y))
    part = np.ascontiguousarray(image[top : int(np.ceil(y2 + around_y)), left : int(np.ceil(x2 + around_x))])
    return np.asarray(Image.fromarray(part).resize(size, PILLOW[scaling], box=(x1 - left, y1 - top, x2 - left, y2 - top)))


def place(canvas, judged, sample, image, m, rect, rng):
    """Draws `image` by `m` into `rect` of the canvas (m is relative to the canvas, of whole pixels); returns the surviving boxes."""
    x1, y1, x2, y2 = rect
    if x2 <= x1 or y2 <= y1:
        return np.zeros((0, 5), np.float32)
    corners = m[:, :2] @ np.array([[0, sample.width], [0, sample.height]], np.float32) + m[:, 2:]
    (left, right), (top, bottom) = np.rint(np.sort(corners, 1)).astype(int)
    ax1, ax2, ay1, ay2 = max(x1, left), min(x2, right), max(y1, top), min(y2, bottom)
    if ax2 > ax1 and ay2 > ay1:
        sx, sy = sample.width / (right - left), sample.height / (bottom - top)
        mirrored = m[0, 0] < 0
        from_x, to_x = ((right - ax2), (right - ax1)) if mirrored else ((ax1 - left), (ax2 - left))
        region = (from_x * sx, (ay1 - top) * sy, min(to_x * sx, sample.width), min((ay2 - top) * sy, sample.height))
        drawn = scaled(image, region, (int(ax2 - ax1), int(ay2 - ay1)), SCALINGS[rng.integers(len(SCALINGS))])
        canvas[ay1:ay2, ax1:ax2] = drawn[:, ::-1] if mirrored else drawn
    # the picture's own area on the canvas takes its set's labelled classes
    ax1, ax2 = np.clip([left, right], x1, x2)
    ay1, ay2 = np.clip([top, bottom], y1, y2)
    judged[cells(ay1, ay2), cells(ax1, ax2)] = sample.labelled
    for ids, bx1, by1, bx2, by2 in sample.ignores:
        box = moved(np.array([[0, bx1, by1, bx2, by2]], np.float32), m)[0]
        blank(judged, box[1:], list(ids), (ax1, ay1, ax2, ay2))
    boxes = moved(sample.boxes, m)
    if not len(boxes):
        return boxes
    area = (boxes[:, 3] - boxes[:, 1]) * (boxes[:, 4] - boxes[:, 2])
    cut = boxes.copy()
    cut[:, [1, 3]] = cut[:, [1, 3]].clip(ax1, ax2)
    cut[:, [2, 4]] = cut[:, [2, 4]].clip(ay1, ay2)
    w, h = cut[:, 3] - cut[:, 1], cut[:, 4] - cut[:, 2]
    keep = (w * h > MIN_VISIBLE * area) & (w > 3) & (h > 3)
    for box in cut[~keep & (w > 0) & (h > 0)]:
        blank(judged, box[1:], [int(box[0])], rect)
    return cut[keep]


def simulated(sample):
    return sample.set.startswith("simulator")


def camera_scale(sample, rng):
    """Of a simulator frame: as a camera's frame of SIMULATOR_WIDTHS."""
    return min(np.exp(rng.uniform(*np.log(SIMULATOR_WIDTHS))) / sample.width, MOST_ENLARGED)


def cells(low, high):
    return slice(int(np.ceil(low / GRID - 0.5)), int(np.ceil(high / GRID - 0.5)))


def blank(judged, box, ids, limit):
    x1, x2 = np.clip([box[0], box[2]], limit[0], limit[2])
    y1, y2 = np.clip([box[1], box[3]], limit[1], limit[3])
    judged[int(y1 // GRID) : int(np.ceil(y2 / GRID)), int(x1 // GRID) : int(np.ceil(x2 / GRID)), ids] = 0


def moved(boxes, m):
    out = boxes.copy()
    xs = m[0, 0] * boxes[:, [1, 3]] + m[0, 2]
    ys = m[1, 1] * boxes[:, [2, 4]] + m[1, 2]
    out[:, 1], out[:, 3] = xs.min(1), xs.max(1)
    out[:, 2], out[:, 4] = ys.min(1), ys.max(1)
    return out


def colour(image, rng):
    """Brightness, contrast, saturation, hue, white balance, night, noise, blur, compression: in place of the picture."""
    hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV)
    gain = rng.uniform(-1, 1, 3) * (0.015, 0.6, 0.45) + 1
    ramp = np.arange(256)
    hsv = cv2.merge((
        cv2.LUT(hsv[..., 0], ((ramp * gain[0]) % 180).astype(np.uint8)),
        cv2.LUT(hsv[..., 1], np.clip(ramp * gain[1], 0, 255).astype(np.uint8)),
        cv2.LUT(hsv[..., 2], np.clip(ramp * gain[2], 0, 255).astype(np.uint8)),
    ))
    image = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
    if rng.random() < 0.1:  # night: dark, cold or yellow, noisy
        tint = rng.uniform(0.2, 0.6) * rng.uniform(0.75, 1.1, 3)
        image = np.clip(image * tint + rng.normal(0, 6, image.shape), 0, 255).astype(np.uint8)
    if rng.random() < 0.12:
        image = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    if rng.random() < 0.08:
        k = int(rng.integers(1, 3)) * 2 + 1
        image = cv2.GaussianBlur(image, (k, k), 0)
    if rng.random() < 0.08:
        ok, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(15, 60))])
        image = cv2.imdecode(data, cv2.IMREAD_COLOR)
    return image


class Canvas:
    """Draws training canvases of `size` x `size` from a store. `weights`: chance of each sample. `paste`, if any, changes a share of
    them before their colours are drawn (`ppe.paste`)."""

    def __init__(self, store, weights, scale=(0.45, 1.35), paste=None):
        self.store, self.scale, self.paste = store, scale, paste
        self.cumulative = np.cumsum(weights / weights.sum())

    def pick(self, rng):
        return self.store[min(int(np.searchsorted(self.cumulative, rng.random())), len(self.store) - 1)]

    def blank(self, size):
        judged = np.ones((size // GRID, size // GRID, len(CLASSES)), np.uint8)
        return np.full((size, size, 3), FILL, np.uint8), judged

    def mosaic(self, rng, size):
        canvas, judged = self.blank(size)
        x, y = (int(v) for v in rng.uniform(0.25, 0.75, 2) * size)
        rects = [(0, 0, x, y), (x, 0, size, y), (0, y, x, size), (x, y, size, size)]
        boxes = []
        for i, rect in enumerate(rects):
            sample, image = self.pick(rng)
            if simulated(sample):
                scale = camera_scale(sample, rng)
            else:
                scale = np.exp(rng.uniform(*np.log(self.scale))) * max(1, USUAL_SIDE / max(sample.width, sample.height))
            m, w, h = affine(rng, sample.width, sample.height, scale)
            room_w, room_h = rect[2] - rect[0], rect[3] - rect[1]
            # a larger picture is cropped anywhere, a smaller one touches the cross point
            m[0, 2] += rect[0] - rng.uniform(0, w - room_w) if w > room_w else (rect[2] - w if i % 2 == 0 else rect[0])
            m[1, 2] += rect[1] - rng.uniform(0, h - room_h) if h > room_h else (rect[3] - h if i < 2 else rect[1])
            m[:, 2] = np.rint(m[:, 2])
            boxes.append(place(canvas, judged, sample, image, m, rect, rng))
        return canvas, judged, np.concatenate(boxes)

    def single(self, rng, size, zoom):
        """One picture: fitted to the canvas times a factor of `zoom`, cropped or padded."""
        canvas, judged = self.blank(size)
        sample, image = self.pick(rng)
        if simulated(sample):
            scale = camera_scale(sample, rng)
        else:
            scale = size / max(sample.width, sample.height) * np.exp(rng.uniform(*np.log(zoom)))
        m, w, h = affine(rng, sample.width, sample.height, scale)
        m[0, 2] += rng.uniform(min(0, size - w), max(0, size - w))
        m[1, 2] += rng.uniform(min(0, size - h), max(0, size - h))
        m[:, 2] = np.rint(m[:, 2])
        boxes = place(canvas, judged, sample, image, m, (0, 0, size, size), rng)
        return canvas, judged, boxes

    def draw(self, rng, size, mosaic, pasted=0.0):
        """(image, judged, boxes); `mosaic` and `pasted` are the chances of a mosaic and of a pasted machine."""
        if rng.random() < mosaic:
            image, judged, boxes = self.mosaic(rng, size)
        elif rng.random() < CLOSE:
            image, judged, boxes = self.single(rng, size, (1.0, 2.2))
        else:
            image, judged, boxes = self.single(rng, size, (0.65, 1.4) if mosaic > 0 else (0.85, 1.15))
        if self.paste and rng.random() < pasted:
            for _ in range(1 + (rng.random() < PAIRED)):
                boxes = self.paste(rng, image, judged, boxes)
        return colour(image, rng), judged, boxes


def letterbox(image, width, height):
    """The picture fitted into width x height as a camera's is, bicubically, and centred on 114; returns it with (scale, left, top)."""
    h, w = image.shape[:2]
    scale = min(width / w, height / h)
    nw, nh = round(w * scale), round(h * scale)
    if (nw, nh) != (w, h):
        image = scaled(image, (0, 0, w, h), (nw, nh), "bicubic")
    left, top = (width - nw) // 2, (height - nh) // 2
    out = np.full((height, width, 3), FILL, np.uint8)
    out[top : top + nh, left : left + nw] = image
    return out, (scale, left, top)
