"""Infers over TLS with tritonclient, unmodified.

Usage: tls_suite.py http|grpc HOST:PORT CA [CERT KEY]

Prints what the model `tiny` answers to so many ones, or what went wrong.
"""

import sys

import numpy as np

kind, address, ca, *own = sys.argv[1:]
if kind == "http":
    import tritonclient.http as api

    names = {"ca_certs": ca, **dict(zip(("certfile", "keyfile"), own))}
    client = api.InferenceServerClient(address, ssl=True, ssl_options=names)
else:
    import tritonclient.grpc as api

    names = dict(zip(("certificate_chain", "private_key"), own))
    client = api.InferenceServerClient(address, ssl=True, root_certificates=ca, **names)

tensor = api.InferInput("x0", [256], "FP32")
tensor.set_data_from_numpy(np.ones(256, dtype=np.float32))
try:
    answer = client.infer("tiny", [tensor]).as_numpy("y")
    print(answer.shape, client.is_server_ready())
except Exception as error:  # noqa: BLE001
    print(type(error).__name__, error)
    sys.exit(1)
