"""Sets of labels and detections on stdin, a JSON list of {"truth": COCO instances, "found": COCO results}; COCO's numbers of each on stdout."""

import contextlib
import io
import json
import sys

from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


def scores(truth, found):
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = truth
        coco.createIndex()
        e = COCOeval(coco, coco.loadRes(found), "bbox")
        e.evaluate()
        e.accumulate()
        e.summarize()
    return {
        "stats": e.stats.tolist(),
        # [IoU, recall, class, area, detections that count]
        "precision": e.eval["precision"].tolist(),
        "scores": e.eval["scores"].tolist(),
        # [IoU, class, area, detections that count]
        "recall": e.eval["recall"].tolist(),
    }


# Not `dump`, which writes number by number.
print(json.dumps([scores(**each) for each in json.load(sys.stdin)]))
