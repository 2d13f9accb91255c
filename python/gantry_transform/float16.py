from .ends import ends_and_behind


def to_float16(model):
    """`model` by ONNX Runtime's converter: inputs and outputs keep their types, and what follows the last layers with weights stays float32,
    since a float16 coordinate is off by 0.25 px at 640. Returns it with the number of nodes that stay."""
    from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    _, behind = ends_and_behind(model)
    converted = convert_float_to_float16(
        model, keep_io_types=True, op_block_list=list(DEFAULT_OP_BLOCK_LIST), node_block_list=behind
    )
    # It puts casts behind the nodes that read them.
    sorted_model = OnnxModel(converted)
    sorted_model.topological_sort()
    return sorted_model.model, len(behind)
