"""Steps of Kubeflow Pipelines that run `gantry batch` and `gantry eval`, and a pipeline of both.

python3 deploy/kfp/gantry_components.py pipeline.yaml   # compiles it, for the image in GANTRY_KFP_IMAGE
"""

import os
import sys
from typing import List

from kfp import compiler, dsl

#: Built from the Dockerfile beside this file: it has `gantry` and kfp.
IMAGE = os.environ.get("GANTRY_KFP_IMAGE", "registry.example.com/gantry-kfp:0.1.0")


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def gantry_batch(
    inputs: List[str],
    results: dsl.Output[dsl.Dataset],
    failures: dsl.Output[dsl.Dataset],
    model: str = "ppe",
    format: str = "jsonl",
    fps: str = "5",
    repository: str = "",
) -> int:
    """Scores pictures and videos that are stored.

    Args:
        inputs: Pictures, videos, folders, globs, s3://BUCKET/PREFIX.
        results: What was found, in the format.
        failures: What could not be scored, a JSON object on each line; the step goes on without it.
        model: Ensemble or detector of the repository.
        format: jsonl, csv, coco or parquet.
        fps: Frames of a second of video, or all.
        repository: Folder of models; empty: those of the image.

    Returns:
        How many could not be scored.
    """
    import os
    import shutil
    import subprocess
    import tempfile

    command = ["gantry", "batch", *inputs, "--out", results.path, "--format", format]
    command += ["--model", model, "--fps", fps]
    if repository:
        command += ["--repository", repository]
    os.makedirs(os.path.dirname(results.path), exist_ok=True)
    with tempfile.TemporaryDirectory() as state:
        subprocess.run([*command, "--state", state], check=True)
    results.metadata["format"] = format
    told = f"{results.path}.errors.jsonl"
    if os.path.exists(told):
        shutil.move(told, failures.path)
    else:
        open(failures.path, "w").close()
    with open(failures.path) as lines:
        return sum(1 for _ in lines)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def gantry_eval(
    models: List[str],
    labels: dsl.Input[dsl.Dataset],
    scores: dsl.Output[dsl.Metrics],
    report: dsl.Output[dsl.HTML],
    images: str = "",
    repository: str = "",
) -> float:
    """Tells the accuracy of models on pictures with labels.

    Args:
        models: Ensembles or detectors; the others are compared with the first.
        labels: COCO instances (JSON), or a folder of YOLO with its data.yaml.
        scores: mAP and AP50 of each model, and how many pictures it scores in a second.
        report: A page with curves and the worst pictures.
        images: Folder of the pictures of a COCO set.
        repository: Folder of models; empty: those of the image.

    Returns:
        mAP of the first model, for a condition on it.
    """
    import json
    import os
    import shutil
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        data = labels.path
        if os.path.isfile(data):
            # The command goes by the end of the name, which artifacts do not have.
            data = os.path.join(folder, "labels.json")
            shutil.copyfile(labels.path, data)
        saved, page = os.path.join(folder, "scores.json"), os.path.join(folder, "report.html")
        command = ["gantry", "eval", *models, "--data", data, "--save", saved, "--report", page]
        if images:
            command += ["--images", images]
        if repository:
            command += ["--repository", repository]
        subprocess.run(command, check=True)
        os.makedirs(os.path.dirname(report.path), exist_ok=True)
        shutil.copyfile(page, report.path)
        with open(saved) as file:
            told = json.load(file)["models"]
    for model in told:
        name = model["model"]["name"].partition(":")[0]
        scores.log_metric(f"{name}_mAP", model["summary"]["map"])
        scores.log_metric(f"{name}_AP50", model["summary"]["ap50"])
        scores.log_metric(f"{name}_pictures_per_second", model["speed"]["picturesPerSecond"])
    return told[0]["summary"]["map"]


@dsl.pipeline(name="gantry")
def score_and_compare(pictures: str, model: str = "ppe", others: List[str] = ["ppe_detect_int8"]) -> float:
    """Finds things in stored pictures, and tells how far other models agree.

    Args:
        pictures: Folder of pictures that each step sees under the same path, such as a volume.
        model: What it finds is taken for true.
        others: Models that are compared with it.

    Returns:
        mAP of the first of the others.
    """
    found = gantry_batch(inputs=[pictures], model=model, format="coco")
    # The names of pictures in what was found are whole paths.
    scores = gantry_eval(models=others, labels=found.outputs["results"], images="/")
    return scores.outputs["Output"]


if __name__ == "__main__":
    compiler.Compiler().compile(score_and_compare, sys.argv[1])
