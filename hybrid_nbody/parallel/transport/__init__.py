"""Transports of rows between ranks: MPI between hosts or GPUs, NCCL, and memory of peers' GPUs."""
