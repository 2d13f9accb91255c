"""Where a network ends and its decoding begins."""

WEIGHED = ("Conv", "ConvTranspose", "MatMul", "Gemm")


def named(model):
    """Gives every node of `model` a name: exporters leave some without, and lists of nodes name them."""
    taken = {n.name for n in model.graph.node}
    for at, n in enumerate(model.graph.node):
        if not n.name:
            n.name = next(name for name in (f"{n.op_type}_{at}", f"gantry_{n.op_type}_{at}") if name not in taken)
    return model


def ends_and_behind(model):
    """Names of the last layers with weights on every way to an output, and of the nodes behind them: raw boxes and scores, and what
    decodes them."""
    nodes = named(model).graph.node
    constants = {i.name for i in model.graph.initializer}
    weighed = [n for n in nodes if n.op_type in WEIGHED and any(name in constants for name in n.input[1:2])]
    # Whether a layer with weights comes behind a tensor.
    leads = set()
    weighed_names = {n.name for n in weighed}
    for n in reversed(nodes):
        if n.name in weighed_names or leads & set(n.output):
            leads.update(n.input)
    ends = [n for n in weighed if not leads & set(n.output)]
    reach, behind = {o for n in ends for o in n.output}, []
    end_names = {n.name for n in ends}
    for n in nodes:
        if n.name not in end_names and reach & set(n.input):
            behind.append(n.name)
            reach |= set(n.output)
    return [n.name for n in ends], behind
