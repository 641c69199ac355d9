"""The direct kernel for CUDA devices: its plan, its launch, and its run in Numba's simulator."""
