"""Training: `python -m ppe.train --data ../shared/datasets --out RUN --minutes 95` (see README.md).

The schedule is a budget of minutes or of steps. Every `--every` steps the state is saved to RUN/last.pt, and the same
command continues from it. Uses a GPU where there is one; on a CPU, bfloat16 and channels-last memory.
"""

import argparse
import copy
import json
import math
import time
from pathlib import Path

import numpy as np
import torch

from .augment import Canvas
from .cache import check_sources, load
from .evaluate import detect, report, torch_runner
from .loss import detection_loss, judged_points
from .model import CLASSES, Detector, decode, points
from .weights import load_init

# Share of the schedule -> sizes drawn, chance of a mosaic.
PHASES = ((0.70, (288, 320, 352), 0.7), (0.90, (320, 384, 416), 0.5), (1.01, (384, 416, 480), 0.0))
PIXELS_PER_BATCH = 16 * 320 * 320
WARMUP = 0.02
EMA_HALF = 1500  # steps until the average's memory is full


class Batches(torch.utils.data.IterableDataset):
    """Endless batches, seeded by (seed, worker, first step), phase by a shared progress value."""

    def __init__(self, canvas, progress, seed):
        self.canvas, self.progress, self.seed = canvas, progress, seed

    def __iter__(self):
        import cv2

        cv2.setNumThreads(1)
        torch.set_num_threads(1)
        worker = torch.utils.data.get_worker_info()
        rng = np.random.default_rng((self.seed, worker.id if worker else 0, int(self.progress[1])))
        while True:
            at = float(self.progress[0])
            _, sizes, mosaic = next(p for p in PHASES if at < p[0])
            size = int(rng.choice(sizes))
            count = max(4, round(PIXELS_PER_BATCH / size**2))
            drawn = [self.canvas.draw(rng, size, mosaic) for _ in range(count)]
            yield (
                torch.from_numpy(np.stack([d[0] for d in drawn])),
                torch.from_numpy(np.stack([d[1] for d in drawn])),
                [torch.from_numpy(d[2]) for d in drawn],
            )


def sample_weights(store):
    """Pictures of rare classes are drawn more often; copies of one source share its weight (by square root)."""
    count = np.zeros(len(CLASSES))
    sources = {}
    for _, s in store.samples:
        count[np.unique(s.boxes[:, 0].astype(int))] += 1
        sources[(s.set, s.source)] = sources.get((s.set, s.source), 0) + 1
    rarity = np.sqrt(count.max() / np.maximum(count, 1))
    out = []
    for _, s in store.samples:
        ids = np.unique(s.boxes[:, 0].astype(int))
        rare = rarity[ids].max() if len(ids) else 0.7
        out.append(rare / math.sqrt(sources[(s.set, s.source)]) * (2.0 if s.set.startswith("simulator") else 1.0))
    return np.array(out)


def groups(model, decay):
    """Weight decay on convolution weights only."""
    wide = [p for p in model.parameters() if p.ndim > 1]
    return [{"params": wide, "weight_decay": decay}, {"params": [p for p in model.parameters() if p.ndim <= 1]}]


def update_average(average, model, step):
    keep = min(0.9995, 1 - 1 / (10 + step / 3)) if step < EMA_HALF * 4 else 0.9995
    with torch.no_grad():
        for a, m in zip(average.state_dict().values(), model.state_dict().values()):
            if a.dtype.is_floating_point:
                a.lerp_(m, 1 - keep)
            else:
                a.copy_(m)


def train_step(model, batch, device):
    images, judged, targets = batch
    x = images.to(device, non_blocking=True).permute(0, 3, 1, 2).float().div_(255.0)
    x = x.contiguous(memory_format=torch.channels_last)
    h, w = x.shape[2:]
    with torch.autocast(device, torch.bfloat16):
        raw, logits = model(x)
    xy, strides = points(h, w, device)
    mask = judged_points(judged.to(device), h, w)
    return detection_loss(
        raw, logits, decode(raw, xy, strides), [t.to(device) for t in targets], mask, xy, strides
    )


def options():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--data", required=True)
    p.add_argument("--out", required=True, help="run folder: checkpoints and log")
    p.add_argument("--cache", help="decoded pictures (default: OUT/cache)")
    p.add_argument("--simulator", nargs="*", default=[], help="simulator folders (train/ and valid/ inside)")
    p.add_argument("--init", help="start from a published .onnx, a .pt of this recipe, or a compact .npz")
    p.add_argument("--minutes", type=float, help="length of the schedule in minutes of training")
    p.add_argument("--steps", type=int, help="length of the schedule in steps")
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--decay", type=float, default=0.03)
    p.add_argument("--every", type=int, default=300, help="steps between checkpoints (about an epoch)")
    p.add_argument("--evaluate-every", type=int, default=1800)
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--seed", type=int, default=7)
    a = p.parse_args()
    if not a.minutes and not a.steps:
        p.error("give --minutes or --steps")
    return a


def main():
    a = options()
    torch.manual_seed(a.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    out = Path(a.out)
    out.mkdir(parents=True, exist_ok=True)
    cache = a.cache or out / "cache"
    train, valid = load(a.data, cache, "train", a.simulator), load(a.data, cache, "valid", a.simulator)
    shared = check_sources(train, valid)
    if shared:
        print(f"warning: {len(shared)} sources are in both splits: {shared[:3]}", flush=True)
    model = Detector()
    if a.init:
        load_init(model, a.init)
    model = model.to(device, memory_format=torch.channels_last).train()
    average = copy.deepcopy(model).eval()
    optimiser = torch.optim.AdamW(groups(model, a.decay), a.lr, betas=(0.9, 0.99))
    step, spent = 0, 0.0
    last = out / "last.pt"
    if last.exists():
        state = torch.load(last, map_location=device, weights_only=True)
        model.load_state_dict(state["model"]), average.load_state_dict(state["average"])
        optimiser.load_state_dict(state["optimiser"])
        step, spent = state["step"], state["spent"]
        print(f"continuing at step {step}, {spent / 60:.1f} min spent", flush=True)
    progress = torch.tensor([0.0, float(step)]).share_memory_()

    def done():
        return step / a.steps if a.steps else spent / (60 * a.minutes)

    progress[0] = min(done(), 1.0)
    canvas = Canvas(train, sample_weights(train))
    loader = iter(
        torch.utils.data.DataLoader(
            Batches(canvas, progress, a.seed), batch_size=None, num_workers=a.workers,
            prefetch_factor=4 if a.workers else None, pin_memory=device == "cuda",
            multiprocessing_context="spawn" if a.workers else None,
        )
    )
    log, seen, since = [], 0, time.time()
    while done() < 1:
        tick = time.time()
        at = done()
        rate = a.lr * min(1.0, at / WARMUP) * (0.02 + 0.98 * (1 + math.cos(math.pi * at)) / 2)
        for g in optimiser.param_groups:
            g["lr"] = rate
        batch = next(loader)
        loss, parts = train_step(model, batch, device)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        if torch.isfinite(loss):
            optimiser.step()
        step += 1
        update_average(average, model, step)
        seen += len(batch[0])
        log.append((loss.item(), parts["cls"], parts["box"]))
        spent += time.time() - tick
        progress[0] = min(done(), 1.0)
        if step % 50 == 0:
            l, c, b = np.mean(log, 0)
            speed = seen / (time.time() - since)
            print(f"step {step} done {done():.3f} lr {rate:.5f} loss {l:.3f} cls {c:.3f} box {b:.3f} {speed:.1f} img/s",
                  flush=True)
            log, seen, since = [], 0, time.time()
        if step % a.every == 0 or done() >= 1:
            state = {"model": model.state_dict(), "average": average.state_dict(),
                     "optimiser": optimiser.state_dict(), "step": step, "spent": spent}
            torch.save(state, out / "last.tmp")
            (out / "last.tmp").rename(last)
        if step % a.evaluate_every == 0 or done() >= 1:
            begin = time.time()
            result = report(valid, detect(torch_runner(copy.deepcopy(average).cpu()), valid, 416), False)
            row = {"step": step, "done": round(done(), 4), "seconds": round(spent), **result["mean"],
                   **{f"{k}_ap50": round(v["ap50"], 4) for k, v in result["all"].items()}}
            with open(out / "curve.jsonl", "a") as f:
                f.write(json.dumps(row) + "\n")
            print("valid", json.dumps(row), flush=True)
            spent += time.time() - begin
            since = time.time()


if __name__ == "__main__":
    main()
