class Refusal(Exception):
    """A model that cannot be transformed: which node and why, and what to do."""

    def __init__(self, why, hint):
        super().__init__(why)
        self.why, self.hint = why, hint
