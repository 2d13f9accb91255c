from onnx import numpy_helper


class Graph:
    """Nodes and constants of a model, by the names of their tensors, while they change."""

    def __init__(self, model):
        self.model, self.nodes = model, list(model.graph.node)
        self.constants = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}

    def maker(self, tensor):
        return next((n for n in self.nodes if tensor in n.output), None)

    def quantiser(self, tensor):
        """The QuantizeLinear that `tensor` goes through, behind activations that its range makes needless."""
        while True:
            n = next((n for n in self.nodes if tensor in n.input), None)
            if n is None or n.op_type not in ("Relu", "Clip", "QuantizeLinear"):
                return None
            if n.op_type == "QuantizeLinear":
                return n
            tensor = n.output[0]

    def constant(self, name, value):
        self.constants[name] = value
        return name

    def put(self, before, *nodes):
        at = self.nodes.index(before)
        self.nodes[at:at] = nodes

    def finished(self):
        """The model without what nothing reads any more."""
        outputs = {o.name for o in self.model.graph.output}
        while True:
            read = outputs.union(*(n.input for n in self.nodes))
            kept = [n for n in self.nodes if read & set(n.output)]
            if len(kept) == len(self.nodes):
                break
            self.nodes = kept
        graph = self.model.graph
        constants = [numpy_helper.from_array(v, k) for k, v in self.constants.items() if k in read]
        del graph.node[:], graph.initializer[:], graph.value_info[:]
        graph.node.extend(kept), graph.initializer.extend(constants)
        return self.model
