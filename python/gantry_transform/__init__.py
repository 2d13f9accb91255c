"""The part of `gantry models transform` that well-kept libraries do: onnxruntime.quantization, ONNX Runtime's float16 converter, onnxslim
and the ONNX checker, and what they leave to be done for the networks of cameras. `python -m gantry_transform` is its one entry."""
