"""`python -m gantry_transform JOB.json`: one job, its result as one line of JSON on stdout, progress on stderr as lines that begin with `gantry: `.

A job: {"step": "int8" | "float16" | "simplify" | "check", "source": FILE, "target": FILE, ...options of the step}. A model that cannot be
transformed ends with status 3 and {"refused": what and why, "hint": what to do} on stdout; anything else that goes wrong is a traceback.
"""

import json
import os
import sys

from .refusal import Refusal


def say(text):
    print(f"gantry: {text}", file=sys.stderr, flush=True)


def main():
    with open(sys.argv[1], encoding="utf8") as file:
        job = json.load(file)
    # What libraries print would stand among the data.
    data, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
    os.dup2(2, 1)
    from . import steps

    try:
        result, status = steps.run(job, say), 0
    except Refusal as refusal:
        result, status = {"refused": refusal.why, "hint": refusal.hint}, 3
    print(json.dumps(result), file=data, flush=True)
    return status


sys.exit(main())
