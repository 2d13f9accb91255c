"""The recipe behind models/ppe_detect: data, network, loss, training, export, evaluation."""

import os

# Before onnxruntime is imported: it reports to its maker otherwise. Whoever wants that says so with 0.
os.environ["ORT_DISABLE_TELEMETRY"] = os.environ.get("ORT_DISABLE_TELEMETRY") or "1"
