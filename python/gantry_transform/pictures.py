import numpy as np


class Pictures:
    """Inputs of a model, one after the other in a file as the cameras' code wrote them; as ONNX Runtime's calibrators read them, and anew
    for each `first`."""

    def __init__(self, path, name, kind, shape):
        self.name = name
        self.values = np.memmap(path, kind, "r").reshape(-1, 1, *shape[1:])
        self.at = 0
        self.end = len(self.values)

    def first(self, count=None):
        again = object.__new__(Pictures)
        again.name, again.values, again.at = self.name, self.values, 0
        again.end = len(self.values) if count is None else min(count, len(self.values))
        return again

    def get_next(self):
        if self.at == self.end:
            return None
        self.at += 1
        return {self.name: np.ascontiguousarray(self.values[self.at - 1])}
