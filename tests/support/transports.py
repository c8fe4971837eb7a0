"""Backends that play the part of GPUs, for the tests of what carries rows between ranks."""


class GpuStandIn:
    """A backend that says what it offers and notes what is asked of its NCCL."""

    description = "GPU 0, stand-in"

    def __init__(self, transports=("nccl", "host")):
        self.transports = transports
        self.calls = []

    def nccl_identifier(self):
        return "the root's identifier"

    def nccl_group(self, size, identifier, rank):
        self.calls.append(("join", size, identifier, rank))
        return self

    def peer_memory(self, communicator):
        return None

    def all_gather(self, array, start, size):
        self.calls.append(("all_gather", start, size))

    def broadcast_each(self, array, pieces):
        self.calls.append(("broadcast_each", pieces))

    def reduce_scatter(self, array, own):
        self.calls.append(("reduce_scatter", array.shape, own.shape))

    def reduce_each(self, array, own, counts, starts):
        self.calls.append(("reduce_each", counts, starts))

    def begin(self, sends, receives):
        self.calls.append(("begin", sends, receives))
        return self

    def finish(self):
        self.calls.append("finish")

    def trade(self, sends, receives):
        self.calls.append(("trade", sends, receives))
