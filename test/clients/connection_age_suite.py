"""Infers over connections that the server ends at their age, one call after another, with tritonclient, unmodified.

Usage: connection_age_suite.py HOST:PORT CALLS

Prints how many calls were answered.
"""

import sys

import numpy as np
import tritonclient.grpc as api

address, calls = sys.argv[1], int(sys.argv[2])
client = api.InferenceServerClient(address)
tensor = api.InferInput("IN", [1, 4], "FP32")
tensor.set_data_from_numpy(np.ones((1, 4), dtype=np.float32))
print(sum(client.infer("plain", [tensor]) is not None for _ in range(calls)))
