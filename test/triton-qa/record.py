"""Runs one of Triton's unittest scripts as it stands, and adds a JSON line for each test to $TRITON_QA_RESULTS."""

import json
import os
import runpy
import sys
import unittest


class Recorder(unittest.TextTestResult):
    """Tells what became of each test, besides what unittest itself prints."""

    def _record(self, test, outcome, error=None):
        reason = "" if error is None else f"{error[0].__name__}: {error[1]}"
        line = {
            "suite": os.environ.get("TRITON_QA_SUITE", ""),
            "test": getattr(test, "_testMethodName", str(test)),
            "variant": os.environ.get("MODEL_INSTANCES", "") or os.environ.get("TRITONSERVER_USE_GRPC", ""),
            "outcome": outcome,
            "reason": " ".join(reason.split())[:2000],
        }
        with open(os.environ["TRITON_QA_RESULTS"], "a", encoding="utf-8") as results:
            results.write(json.dumps(line) + "\n")

    def addSuccess(self, test):
        super().addSuccess(test)
        self._record(test, "passed")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._record(test, "failed", err)

    def addError(self, test, err):
        super().addError(test, err)
        self._record(test, "failed", err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._record(test, "skipped")


unittest.TextTestRunner.resultclass = Recorder
script = sys.argv[1]
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(script))
runpy.run_path(script, run_name="__main__")
