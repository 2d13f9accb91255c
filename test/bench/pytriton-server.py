"""Serves an ONNX model with one input x0 and one output y, both FP32 [256], behind nvidia-pytriton. Batching is off.

    python pytriton-server.py MODEL.onnx GRPC_PORT HTTP_PORT METRICS_PORT

Prints "ready"; ends when its stdin closes, and its tritonserver with it.
"""

import os
import sys

os.environ["ORT_DISABLE_TELEMETRY"] = os.environ.get("ORT_DISABLE_TELEMETRY") or "1"

import numpy as np
import onnxruntime
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig, TritonSecurityConfig

path, grpc_port, http_port, metrics_port = sys.argv[1], *map(int, sys.argv[2:5])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def infer(requests):
    return [{"y": session.run(["y"], {"x0": request["x0"]})[0]} for request in requests]


local = {f"{kind}_address": "127.0.0.1" for kind in ("http", "grpc", "metrics")}
ports = {"http_port": http_port, "grpc_port": grpc_port, "metrics_port": metrics_port}
config = TritonConfig(**local, **ports, allow_metrics=True, allow_gpu_metrics=False)
with Triton(config=config, security_config=TritonSecurityConfig(restricted_endpoints=[])) as triton:
    triton.bind(
        model_name="tiny",
        infer_func=infer,
        inputs=[Tensor(name="x0", dtype=np.float32, shape=(256,))],
        outputs=[Tensor(name="y", dtype=np.float32, shape=(256,))],
        config=ModelConfig(batching=False),
        strict=False,
    )
    triton.run()
    print("ready", flush=True)
    sys.stdin.read()
