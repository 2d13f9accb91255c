"""The training command itself, a few steps on pictures made here: it saves, continues and averages."""

import json
import multiprocessing
import os
import select
import signal
import sys
import time

import cv2
import numpy as np
import pytest
import torch

from ppe import train
from ppe.augment import Canvas
from ppe.cache import load
from ppe.model import Detector
from ppe.train import Ranks, update_average


@pytest.fixture()
def data(tmp_path):
    rng = np.random.default_rng(0)
    for split in ("train", "valid"):
        folder = tmp_path / "data" / "forklift" / split
        (folder / "images").mkdir(parents=True), (folder / "labels").mkdir()
        for i in range(3):
            image = rng.integers(0, 120, (96, 128, 3), np.uint8)
            cv2.rectangle(image, (32, 24), (95, 71), (0, 200, 255), -1)
            cv2.imwrite(str(folder / "images" / f"{split}{i}.jpg"), image)
            (folder / "labels" / f"{split}{i}.txt").write_text("0 0.5 0.5 0.5 0.5\n")
    return tmp_path


def run(monkeypatch, data, steps, *more):
    monkeypatch.setattr(train, "PHASES", ((1.01, (64,), 0.5, 0.2),))
    monkeypatch.setattr(train, "PIXELS_PER_BATCH", 4 * 64 * 64)
    argv = ["train", "--data", str(data / "data"), "--out", str(data / "run"), "--steps", str(steps), "--workers", "0",
            "--processes", "1", "--every", "2", *more]
    monkeypatch.setattr(sys, "argv", argv)
    train.main()
    return torch.load(data / "run" / "last.pt", weights_only=True)


def test_training_stops_at_its_budget_saves_and_continues_from_there(monkeypatch, data, capfd):
    first = run(monkeypatch, data, 2)
    assert first["step"] == 2
    start = torch.load(data / "run" / "start.pt", weights_only=True)["average"]
    second = run(monkeypatch, data, 5)
    assert second["step"] == 5 and "continuing at step 2" in capfd.readouterr().out
    changed = {k for k in first["model"] if (first["model"][k] != second["model"][k]).any()}
    assert any(k.startswith("backbone.context.blocks.9") for k in changed)
    assert not any(k.startswith(("backbone.context.stem", "backbone.context.blocks.4.")) for k in changed)
    rows = [json.loads(line) for line in (data / "run" / "curve.jsonl").read_text().splitlines()]
    again = torch.load(data / "run" / "start.pt", weights_only=True)["average"]
    assert all((start[k] == again[k]).all() for k in start) and any((start[k] != first["average"][k]).any() for k in start)
    assert [r["step"] for r in rows] == [2, 5] and "machinery_ap50" in rows[0] and "helmet_ap50" not in rows[0]


def test_a_step_is_the_same_in_bfloat16_and_in_float32_but_for_rounding():
    torch.manual_seed(2)
    model, rng = Detector().eval(), np.random.default_rng(2)
    boxes = torch.tensor([[5.0, 8, 8, 40, 50], [0.0, 30, 4, 40, 14]])
    batch = torch.from_numpy(rng.integers(0, 256, (2, 64, 64, 3), np.uint8)), torch.ones(2, 8, 8, 7), [boxes, boxes[:0]]
    half, full = (train.train_step(model, batch, "cpu", half)[0].item() for half in (True, False))
    assert half == pytest.approx(full, rel=0.05) and half != full


def test_a_run_does_not_go_on_with_other_options(monkeypatch, data):
    run(monkeypatch, data, 2, "--only", "neck.up")
    with pytest.raises(SystemExit, match="last.pt was begun with --only neck.up: say the same"):
        run(monkeypatch, data, 3)
    with pytest.raises(SystemExit, match="last.pt was begun with --lr 0.002: say the same"):
        run(monkeypatch, data, 3, "--only", "neck.up", "--lr", "1e-3")
    assert run(monkeypatch, data, 3, "--only", "neck.up")["step"] == 3


def test_the_same_seed_draws_the_same_batches_however_far_ahead_the_loader_is(data, tmp_path):
    store = load(data / "data", tmp_path / "cache", "train")
    def drawn(progress_after_two):
        progress = torch.tensor([0.0, 0.0])
        feed = iter(train.Batches(Canvas(store, np.ones(len(store))), progress, 7, 0, 1, steps=5))
        batches = [next(feed), next(feed)]
        progress[0] = progress_after_two
        return [images for images, _, _ in batches + [next(feed), next(feed), next(feed)]]
    early, late = drawn(0.0), drawn(0.9)
    assert [b.shape for b in early] == [b.shape for b in late] and all((x == y).all() for x, y in zip(early, late))
    assert early[0].shape[1] < early[4].shape[1]


def test_only_what_is_named_learns_and_a_name_that_is_none_is_an_error(monkeypatch, data, capsys):
    after = run(monkeypatch, data, 2, "--only", "neck.up", "heads.2")
    start = torch.load(data / "run" / "start.pt", weights_only=True)["average"]
    for weights in (after["model"], after["average"]):
        changed = {k for k in start if (start[k] != weights[k]).any()}
        assert {k.split(".")[0] + "." + k.split(".")[1] for k in changed} == {"neck.up16", "neck.up32", "heads.2"}
        assert any(k.endswith("running_mean") for k in changed)
    with pytest.raises(SystemExit):
        run(monkeypatch, data, 2, "--only", "nekc.up")
    assert "--only nekc.up: no parameter's name begins so" in capsys.readouterr().err


def test_the_average_moves_towards_the_model_and_copies_counters():
    torch.manual_seed(0)
    model, average = Detector(), Detector()
    before = (average.neck.lateral8[0].weight - model.neck.lateral8[0].weight).abs().mean()
    model.neck.lateral8[1].num_batches_tracked.fill_(9)
    update_average(average, model, 1)
    after = (average.neck.lateral8[0].weight - model.neck.lateral8[0].weight).abs().mean()
    assert after < before and average.neck.lateral8[1].num_batches_tracked == 9


def work(rank, meeting, out):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    model = torch.nn.Linear(3, 2)
    for p in model.parameters():
        p.grad = torch.full_like(p, float(rank * 2))
    clock = Ranks(model, rank, 2).average(0.25 + rank)
    torch.save([clock] + [p.grad for p in model.parameters()], f"{out}/{rank}.pt")
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def test_processes_agree_on_the_mean_gradient_and_on_the_first_ones_clock(tmp_path):
    torch.multiprocessing.spawn(work, (str(tmp_path / "meeting"), str(tmp_path)), 2)
    for rank in (0, 1):
        clock, *grads = torch.load(tmp_path / f"{rank}.pt")
        assert clock == 0.25 and all((g == 1).all() for g in grads)


def stay(rank, parent, tell):
    train.end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what PyTorch sends; one that waits for the others does not end by it
    tell.send(os.getpid())
    time.sleep(60)


def start_one_that_stays(tell):
    torch.multiprocessing.spawn(stay, (os.getpid(), tell), 1)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells a process that its parent ended")
def test_the_processes_of_a_training_end_with_the_one_that_started_them_however_it_ends():
    spawn = multiprocessing.get_context("spawn")
    told, tell = spawn.Pipe(False)
    parent = spawn.Process(target=start_one_that_stays, args=(tell,))
    parent.start()
    assert told.poll(60)
    child = os.pidfd_open(told.recv())
    os.kill(parent.pid, signal.SIGKILL)
    assert select.select([child], [], [], 30)[0] == [child]
    os.close(child), parent.join()
