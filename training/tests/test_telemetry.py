"""onnxruntime keeps still: the package says so before anything of it is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("given, told", [(None, "1"), ("", "1"), ("0", "0")])
def test_onnxruntime_reports_only_when_asked(given, told):
    env = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    if given is not None:
        env["ORT_DISABLE_TELEMETRY"] = given
    code = "import ppe, os; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    run = subprocess.run([sys.executable, "-c", code], env=env, cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert run.stdout.strip() == told
