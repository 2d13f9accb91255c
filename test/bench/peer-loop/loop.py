"""What a careful user writes instead of a service: a thread a camera, OpenCV on RTSP over TCP, ONNX Runtime at batch 1, JSON lines.

    loop.py MODEL.onnx WIDTH HEIGHT FPS NATIVE_FPS URL...

One decoder thread a camera, one session of one thread that does not spin, and no OpenCV threads: the settings at which it is fastest on
a machine whose cores are all in use. A line of stdout is one analysed picture, in the order of `URL`s: {"camera", "width", "boxes"},
boxes as [x1, y1, x2, y2, score, class] in pixels of the picture.
"""

import json
import os
import sys
import threading

os.environ["OPENCV_FFMPEG_CAPTURE_OPTIONS"] = "rtsp_transport;tcp"

import cv2
import numpy as np
import onnxruntime

GREY = (114, 114, 114)
LEAST_SCORE = 0.3
MOST_OVERLAP = 0.5
MOST_BOXES = 300

path, width, height, fps, native_fps = sys.argv[1], *map(int, sys.argv[2:4]), *map(float, sys.argv[4:6])
urls = sys.argv[6:]

cv2.setNumThreads(1)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
options.inter_op_num_threads = 1
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
out = threading.Lock()


def detect(picture):
    """Boxes of a BGR picture [H, W, 3]: letterbox, run, best class of each candidate, suppression within each class."""
    high, wide = picture.shape[:2]
    scale = min(width / wide, height / high)
    scaled = (round(wide * scale), round(high * scale))
    left, top = (width - scaled[0]) // 2, (height - scaled[1]) // 2
    image = cv2.resize(picture, scaled, interpolation=cv2.INTER_LINEAR)
    right, bottom = width - scaled[0] - left, height - scaled[1] - top
    image = cv2.copyMakeBorder(image, top, bottom, left, right, cv2.BORDER_CONSTANT, value=GREY)
    image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    found = session.run(None, {"images": image[None]})[0][0]
    best = found[4:].max(0)
    kept = best > LEAST_SCORE
    if not kept.any():
        return []
    found, scores = found[:, kept], best[kept]
    classes = found[4:].argmax(0)
    corners = found[:2] - found[2:4] / 2
    boxes = np.concatenate([corners, found[2:4]]).T
    chosen = cv2.dnn.NMSBoxesBatched(boxes.tolist(), scores.tolist(), classes.tolist(), LEAST_SCORE, MOST_OVERLAP)
    return [
        [
            float((boxes[i][0] - left) / scale),
            float((boxes[i][1] - top) / scale),
            float((boxes[i][0] + boxes[i][2] - left) / scale),
            float((boxes[i][1] + boxes[i][3] - top) / scale),
            float(scores[i]),
            int(classes[i]),
        ]
        for i in np.asarray(chosen).flatten()[:MOST_BOXES]
    ]


def watch(camera, url):
    capture = cv2.VideoCapture(url, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
    each = max(1, round(native_fps / fps))
    grabbed = 0
    while capture.grab():
        if grabbed % each == 0:
            is_there, picture = capture.retrieve()
            if is_there:
                line = json.dumps({"camera": camera, "width": picture.shape[1], "boxes": detect(picture)})
                with out:
                    sys.stdout.write(line + "\n")
                    sys.stdout.flush()
        grabbed += 1
    sys.stderr.write(f"{url} ended\n")


threads = [threading.Thread(target=watch, args=each, daemon=True) for each in enumerate(urls)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
