"""MLServer's usual custom runtime around ONNX Runtime, tuned: runs in two threads, so that its loop goes on, with one thread each."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

os.environ["ORT_DISABLE_TELEMETRY"] = os.environ.get("ORT_DISABLE_TELEMETRY") or "1"

import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class OnnxRuntime(MLModel):
    async def load(self) -> bool:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        path = self.settings.parameters.uri
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.threads = ThreadPoolExecutor(2)
        return True

    async def predict(self, request: InferenceRequest) -> InferenceResponse:
        given = NumpyCodec.decode_input(request.inputs[0])
        run = lambda: self.session.run(None, {"x0": given})[0]
        made = await asyncio.get_running_loop().run_in_executor(self.threads, run)
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("y", made)])
