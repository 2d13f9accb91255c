"""Training: `python -m ppe.train --data ../shared/datasets --out RUN --minutes 95` (see README.md).

The schedule is a budget of minutes or of steps. Every `--every` steps the state is saved to RUN/last.pt, and the same
command continues from it. RUN/start.pt is what the run began with, for `ppe.weights` to mix with its end. Uses a GPU
where there is one; on a CPU, bfloat16 where that is faster, channels-last memory and one process of one thread per core, whose gradients are
averaged: threads that wait for each other inside every operation lose nearly everything on a machine that has other
work (measured: 52 pictures/s alone, 5 beside one busy process).
"""

import argparse
import copy
import ctypes
import datetime
import itertools
import json
import math
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from .augment import Canvas
from .cache import check_sources, described, load
from .evaluate import detect, report, torch_runner
from .loss import detection_loss, judged_points
from .context import load_pretrained
from .model import CLASSES, Detector, decode, points
from .paste import Paste, cutouts
from .weights import load_init, restore_statistics

# Share of the schedule -> sizes drawn, chance of a mosaic, chance of a pasted machine. Pasted ones teach which of two machines is which, but
# not where a machine ends: boxes learned with them to the end are looser, and double more often.
PHASES = ((0.4, (256, 288, 320), 0.4, 0.3), (0.8, (288, 320, 384), 0.25, 0.1), (1.01, (384, 416), 0.0, 0.0))
PIXELS_PER_BATCH = 16 * 320 * 320
WARMUP = 0.02
RARITY = 0.75  # pictures are drawn by the inverse count of their rarest class to this power
EMPHASIS = {"machinery": 5.0, "vehicle": 2.5}  # the slowest to learn: large, varied, few pictures
# Least weight of a photograph that shows no machine where machines are labelled, and of one that shows nothing of the classes: drawn as
# seldom as their classes ask for (0.4 % of all draws), road signs, bicycles and bookshelves passed for machines.
NO_MACHINE, NOTHING = 5.0, 16.0
SIMULATOR_SHARE = 0.38  # of all draws, unless --simulator-share says otherwise
CONTEXT_DROP = 0.25  # of the pictures go without the context path, to which the backbone leaves what it can, while there are mosaics
CONTEXT_RATE = 0.2  # learning rate of the context path, as a share of the other rates
EMA_HALF = 1500  # steps until the average's memory is full


def phase(at):
    """(sizes drawn, chance of a mosaic, chance of a pasted machine) at a share of the schedule, 0..1."""
    return next(rest for end, *rest in PHASES if at < end)


class Batches(torch.utils.data.IterableDataset):
    """Endless batches, seeded by (seed, rank, worker, first step). Their phase is that of the step they are drawn for where the
    schedule has a number of steps, so that the same seed draws the same batches; else it comes from the shared clock."""

    def __init__(self, canvas, progress, seed, rank, ranks, steps):
        self.canvas, self.progress, self.seed, self.rank, self.ranks, self.steps = canvas, progress, seed, rank, ranks, steps

    def __iter__(self):
        import cv2

        cv2.setNumThreads(1)
        torch.set_num_threads(1)
        worker = torch.utils.data.get_worker_info()
        id, workers, first = worker.id if worker else 0, worker.num_workers if worker else 1, int(self.progress[1])
        rng = np.random.default_rng((self.seed, self.rank, id, first))
        for step in itertools.count(first + id, workers):  # the loader takes from its workers in turn
            at = min(step / self.steps, 1.0) if self.steps else float(self.progress[0])
            sizes, mosaic, pasted = phase(at)
            size = int(rng.choice(sizes))
            count = max(2, round(PIXELS_PER_BATCH / self.ranks / size**2))
            drawn = [self.canvas.draw(rng, size, mosaic, pasted) for _ in range(count)]
            yield (
                torch.from_numpy(np.stack([d[0] for d in drawn])),
                torch.from_numpy(np.stack([d[1] for d in drawn])),
                [torch.from_numpy(d[2]) for d in drawn],
            )


def sample_weights(store, simulator_share=SIMULATOR_SHARE, emphasis=1.0):
    """Pictures of rare classes are drawn more often; copies of one source share its weight (by square root).
    Simulator frames get `simulator_share` of all draws, whatever their number, each the same. `emphasis` multiplies EMPHASIS."""
    count = np.zeros(len(CLASSES))
    sources = {}
    simulated = np.array([s.set.startswith("simulator") for _, s in store.samples])
    for (_, s), skip in zip(store.samples, simulated):
        if not skip:
            count[np.unique(s.boxes[:, 0].astype(int))] += 1
        sources[(s.set, s.source)] = sources.get((s.set, s.source), 0) + 1
    rarity = (count.max() / np.maximum(count, 1)) ** RARITY
    rarity *= [emphasis * EMPHASIS[c] if c in EMPHASIS else 1.0 for c in CLASSES]
    machinery = CLASSES.index("machinery")
    out = np.ones(len(store))
    for i, (_, s) in enumerate(store.samples):
        ids = np.unique(s.boxes[:, 0].astype(int))
        rare = rarity[ids].max() if len(ids) else NOTHING
        if machinery not in ids and s.labelled[machinery]:
            rare = max(rare, NO_MACHINE)
        out[i] = rare / math.sqrt(sources[(s.set, s.source)])
    if simulated.any() and not simulated.all():
        out[simulated] = simulator_share / (1 - simulator_share) * out[~simulated].sum() / simulated.sum()
    return out


def train_only(model, beginnings):
    """Parameters whose names begin otherwise, and the statistics of their batch norms, stay as they are."""
    for name, p in model.named_parameters():
        p.requires_grad_(name.startswith(beginnings))
    for name, m in model.named_modules():
        if isinstance(m, torch.nn.BatchNorm2d) and not name.startswith(beginnings):
            m.eval()


def groups(model, decay, rate):
    """Weight decay on convolution weights only; the context path, trained already, learns more slowly."""
    model.backbone.context.freeze()
    context = {id(p) for p in model.backbone.context.parameters()}
    out = []
    for share, members in ((1.0, lambda p: id(p) not in context), (CONTEXT_RATE, lambda p: id(p) in context)):
        some = [p for p in model.parameters() if p.requires_grad and members(p)]
        out.append({"params": [p for p in some if p.ndim > 1], "weight_decay": decay, "lr": rate, "share": share})
        out.append({"params": [p for p in some if p.ndim <= 1], "weight_decay": 0.0, "lr": rate, "share": share})
    return out


def update_average(average, model, step):
    keep = min(0.9995, 1 - 1 / (10 + step / 3)) if step < EMA_HALF * 4 else 0.9995
    pairs = list(zip(average.state_dict().values(), model.state_dict().values()))
    with torch.no_grad():
        torch._foreach_lerp_(*zip(*(pair for pair in pairs if pair[0].dtype.is_floating_point)), 1 - keep)
        for a, m in pairs:
            if not a.dtype.is_floating_point:
                a.copy_(m)


def train_step(model, batch, device, half=True):
    """Loss and its parts. `half`: in bfloat16 where autocast allows it, else in float32."""
    images, judged, targets = batch
    x = images.to(device, non_blocking=True).permute(0, 3, 1, 2).float().div_(255.0)
    x = x.contiguous(memory_format=torch.channels_last)
    h, w = x.shape[2:]
    with torch.autocast(device, torch.bfloat16, enabled=half):
        raw, logits = model(x)
    xy, strides = points(h, w, device)
    mask = judged_points(judged.to(device), h, w)
    return detection_loss(raw, logits, decode(raw, xy, strides), [t.to(device) for t in targets], mask, xy, strides)


def half_is_faster(size=320, count=4):
    """Whether this machine computes a training step faster in bfloat16; measured, since one took half the time of float32 and another,
    with AVX-512 and no AMX, 1.26 times. A GPU always does."""
    if torch.cuda.is_available():
        return True
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    model = Detector().to(memory_format=torch.channels_last).train()
    box = torch.tensor([[0, size / 4, size / 4, size / 2, size / 2]])
    batch = torch.zeros(count, size, size, 3, dtype=torch.uint8), torch.ones(count, size // 8, size // 8, len(CLASSES)), [box] * count
    best = {}
    for half in (True, False) * 3:
        begin = time.perf_counter()
        train_step(model, batch, "cpu", half)[0].backward()
        best[half] = min(best.get(half, math.inf), time.perf_counter() - begin)
    torch.set_num_threads(threads)
    print(f"a step in bfloat16 takes {best[True] / best[False]:.2f} times as long as in float32", flush=True)
    return best[True] < best[False]


class Ranks:
    """The processes of one training: averages gradients in one flat buffer and carries rank 0's clock to all."""

    def __init__(self, model, rank, count):
        self.rank, self.count = rank, count
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.flat = torch.zeros(sum(p.numel() for p in self.parameters) + 1)

    def average(self, clock):
        """Replaces every gradient by the mean over the ranks; returns rank 0's clock."""
        if self.count == 1:
            return clock
        for p in self.parameters:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad  # the same parameters step on every rank
        torch.cat([p.grad.flatten() for p in self.parameters] + [torch.tensor([clock * (self.rank == 0)])], out=self.flat)
        dist.all_reduce(self.flat)
        clock = float(self.flat[-1])
        parts = self.flat.div_(self.count)[:-1].split([p.numel() for p in self.parameters])
        torch._foreach_copy_([p.grad for p in self.parameters], [part.view_as(p) for part, p in zip(parts, self.parameters)])
        return clock


def options():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--data", required=True)
    p.add_argument("--out", required=True, help="run folder: checkpoints and log")
    p.add_argument("--cache", help="decoded pictures (default: OUT/cache)")
    p.add_argument("--simulator", nargs="*", default=[], help="simulator folders (train/ and valid/ inside)")
    p.add_argument("--simulator-share", type=float, default=SIMULATOR_SHARE, help="of all draws")
    p.add_argument("--emphasis", type=float, default=1.0, help="photographs of machines and vehicles weigh so many times as much in the draws")
    p.add_argument("--init", help="start from a published .onnx, a .pt of this recipe, or a compact .npz")
    p.add_argument("--only", nargs="+", default=[], metavar="BEGINNING",
                   help="train only parameters whose names begin so (neck.up, heads.2 ...), leave the others as they are")
    p.add_argument("--minutes", type=float, help="length of the schedule in minutes of training")
    p.add_argument("--steps", type=int, help="length of the schedule in steps")
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--decay", type=float, default=0.03)
    p.add_argument("--every", type=int, default=300, help="steps between checkpoints (about an epoch)")
    p.add_argument("--evaluate-every", type=int, default=1800)
    p.add_argument("--workers", type=int, default=1, help="loader processes per training process")
    p.add_argument("--processes", type=int, help="training processes (default: 1 on a GPU, else one per core, four at most)")
    p.add_argument("--seed", type=int, default=7)
    a = p.parse_args()
    if not a.minutes and not a.steps:
        p.error("give --minutes or --steps")
    if not 0 < a.emphasis < math.inf:
        p.error(f"--emphasis {a.emphasis}: say a number above 0; 1 draws as the recipe does, 2 machines and vehicles twice as often")
    names = [name for name, _ in Detector().named_parameters()]
    for beginning in a.only:
        if not any(name.startswith(beginning) for name in names):
            p.error(f"--only {beginning}: no parameter's name begins so; {names[0]} and {names[-1]} are such names")
    if a.processes is None:
        a.processes = 1 if torch.cuda.is_available() else min(4, len(os.sched_getaffinity(0)))
    return a


def batches(a, train, cache, progress, rank, device):
    canvas = Canvas(train, sample_weights(train, a.simulator_share, a.emphasis), paste=Paste(train, cutouts(train, cache)))
    return iter(
        torch.utils.data.DataLoader(
            Batches(canvas, progress, a.seed, rank, a.processes, a.steps), batch_size=None, num_workers=a.workers,
            prefetch_factor=4 if a.workers else None, pin_memory=device == "cuda",
            multiprocessing_context="spawn" if a.workers else None,
        )
    )


def save(path, model, average, optimiser, step, spent, run):
    torch.save(
        {"model": model.state_dict(), "average": average.state_dict(), "optimiser": optimiser.state_dict(),
         "step": step, "spent": spent, "run": run},
        path.with_suffix(".tmp"),
    )
    path.with_suffix(".tmp").rename(path)


def validate(out, average, valid, step, at, spent):
    result = report(valid, detect(torch_runner(copy.deepcopy(average).cpu()), valid, (416, 416)), False)
    row = {"step": step, "done": round(at, 4), "seconds": round(spent), **result["mean"],
           **{f"{k}_ap50": round(v["ap50"], 4) for k, v in result["all"].items()}}
    with open(out / "curve.jsonl", "a") as f:
        f.write(json.dumps(row) + "\n")
    print("valid", json.dumps(row), flush=True)


def start_from(model, path, store, seed):
    """`--init`, or nothing but the context path; a fused file gets the statistics of 48 training canvases, the same ones
    in every process."""
    if path is None:
        return load_pretrained(model.backbone.context)
    load_init(model, path)
    if str(path).endswith(".onnx"):
        canvas, rng = Canvas(store, sample_weights(store)), np.random.default_rng(seed)
        images = np.stack([canvas.draw(rng, 352, PHASES[0][2])[0] for _ in range(48)])
        restore_statistics(model, torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255)


def end_with_parent(parent):
    """This process ends when `parent`, which started it, does, however that ends; its loaders see to themselves. Linux only."""
    if sys.platform == "linux":
        PR_SET_PDEATHSIG = 1
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit("the process that began this training has ended")


def train(rank, a, meeting, parent=None):
    """One process of the training; rank 0 also keeps the average, saves and validates."""
    if parent is not None:
        end_with_parent(parent)
    torch.manual_seed(a.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if a.processes > 1:
        torch.set_num_threads(1)
        dist.init_process_group(
            "gloo", init_method=f"file://{meeting}", rank=rank, world_size=a.processes,
            timeout=datetime.timedelta(minutes=30),
        )
    out = Path(a.out)
    cache = a.cache or out / "cache"
    data, valid = load(a.data, cache, "train", a.simulator), load(a.data, cache, "valid", a.simulator)
    model = Detector()
    if not (out / "last.pt").exists():
        start_from(model, a.init, data, a.seed)
        if rank == 0:
            torch.save({"average": model.state_dict()}, out / "start.pt")
    model = model.to(device, memory_format=torch.channels_last).train()
    if a.only:
        train_only(model, tuple(a.only))
    average = copy.deepcopy(model).eval()
    optimiser = torch.optim.AdamW(groups(model, a.decay, a.lr), betas=(0.9, 0.99), fused=True)
    step, spent, last = 0, 0.0, out / "last.pt"
    if last.exists():
        state = torch.load(last, map_location=device, weights_only=True)
        model.load_state_dict(state["model"]), average.load_state_dict(state["average"])
        optimiser.load_state_dict(state["optimiser"])
        step, spent = state["step"], state["spent"]
        print(f"continuing at step {step}, {spent / 60:.1f} min spent", flush=True)

    def share(step):
        return step / a.steps if a.steps else spent / (60 * a.minutes)

    at = share(step)
    progress = torch.tensor([at, float(step)]).share_memory_()
    # None for a schedule that is at its end: a loader that ends before its first batch aborts its process.
    feed = batches(a, data, cache, progress, rank, device) if at < 1 else None
    ranks = Ranks(model, rank, a.processes)
    log, seen, since = [], 0, time.time()
    while at < 1:
        tick = time.time()
        rate = a.lr * min(1.0, at / WARMUP) * (0.02 + 0.98 * (1 + math.cos(math.pi * at)) / 2)
        for g in optimiser.param_groups:
            g["lr"] = rate * g["share"]
        _, mosaic, _ = phase(at)
        model.backbone.context_drop = CONTEXT_DROP if mosaic and not a.only else 0.0  # with --only, the backbone may not learn
        batch = next(feed)
        loss, parts = train_step(model, batch, device, a.half)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        at = ranks.average(share(step + 1))
        norm = torch.nn.utils.clip_grad_norm_(ranks.parameters, 10.0)
        if torch.isfinite(norm):
            optimiser.step()
        step += 1
        progress[0] = min(at, 1.0)
        if rank == 0:
            update_average(average, model, step)
        seen += len(batch[0]) * a.processes
        log.append((loss.item(), parts["cls"], parts["box"]))
        spent += time.time() - tick
        if rank:
            continue
        if step % 50 == 0:
            l, c, b = np.mean(log, 0)
            speed = seen / (time.time() - since)
            print(f"step {step} done {at:.3f} lr {rate:.5f} loss {l:.3f} cls {c:.3f} box {b:.3f} {speed:.1f} img/s",
                  flush=True)
            log, seen, since = [], 0, time.time()
        if step % a.every == 0 or at >= 1:
            save(last, model, average, optimiser, step, spent, described_run(a))
        if step % a.evaluate_every == 0 or at >= 1:
            begin = time.time()
            validate(out, average, valid, step, at, spent)
            spent += time.time() - begin
            since = time.time()
    if a.processes > 1:
        dist.barrier()  # until rank 0 has saved and validated
        dist.destroy_process_group()


def described_run(a):
    """The options that make a run what it is; its length may change on the way."""
    return {name: " ".join(value) if isinstance(value, list) else str(value) for name, value in vars(a).items()
            if name in ("only", "init", "seed", "lr", "decay", "simulator", "simulator_share", "emphasis")}


def check_continuing(last, run):
    """A run goes on with the options it began with."""
    if not last.exists():
        return
    began = run | torch.load(last, map_location="cpu", weights_only=True).get("run", {})  # an option newer than the run is as it is now
    other = [f"--{name.replace('_', '-')} {began[name] or 'nothing'}" for name in run if began[name] != run[name]]
    if other:
        raise SystemExit(f"{last} was begun with {', '.join(other)}: say the same, or another --out with --init {last}")


def main():
    a = options()
    check_continuing(Path(a.out) / "last.pt", described_run(a))
    Path(a.out).mkdir(parents=True, exist_ok=True)
    cache = a.cache or Path(a.out) / "cache"
    splits = {split: load(a.data, cache, split, a.simulator) for split in ("train", "valid")}
    for split, store in splits.items():
        print(f"{split}: {described(store)}", flush=True)
    machines = cutouts(splits["train"], cache)
    print(f"{sum(map(len, machines))} machines of {len(machines)} photographs cut out, to be pasted into others", flush=True)
    both = check_sources(*splits.values())
    if both:
        print(f"warning: {len(both)} sources are in both splits: {both[:3]}", flush=True)
    a.half = half_is_faster()
    if a.processes == 1:
        return train(0, a, None)
    with tempfile.TemporaryDirectory() as tmp:
        torch.multiprocessing.spawn(train, (a, f"{tmp}/meeting", os.getpid()), a.processes)


if __name__ == "__main__":
    main()
