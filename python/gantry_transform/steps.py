"""The steps by their names."""

import onnx

from .refusal import Refusal

QUANTISED = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul")


def run(job, say):
    source, target = job["source"], job.get("target")
    if job["step"] == "check":
        return check(source)
    model = onnx.load(source)
    if job["step"] == "simplify":
        before, simplified = len(model.graph.node), simplify(model)
        onnx.save(simplified, target)
        return {"nodesBefore": before, "nodes": len(simplified.graph.node), **check(target)}
    refuse_quantised(model)
    if job["step"] == "float16":
        from .float16 import to_float16

        converted, kept = to_float16(model)
        onnx.save(converted, target)
        return {"float32Nodes": kept, **check(target)}
    if job["step"] == "int8":
        from .int8 import Settings, quantise
        from .pictures import Pictures

        pictures = Pictures(job["pictures"], job["input"], job["elementType"], job["shape"])
        result = quantise(source, target, pictures, Settings(**job["settings"]), say)
        return {**result, **check(target)}
    raise ValueError(f"no step {job['step']}")


def refuse_quantised(model):
    node = next((n for n in model.graph.node if n.op_type in QUANTISED), None)
    if node is not None:
        raise Refusal(
            f'the model is quantised already: node "{node.name}" is a {node.op_type}',
            "Begin with the float32 model that it was made from.",
        )


def simplify(model):
    import onnxslim

    return onnxslim.slim(model)


def check(path):
    """The ONNX checker, with shapes inferred where that goes through the whole graph; what it says of a file that it refuses."""
    try:
        onnx.checker.check_model(path, full_check=True)
        return {"checker": "passed"}
    except Exception as error:  # The checker has several, of C++.
        return {"checker": str(error).strip().split("\n")[0]}
