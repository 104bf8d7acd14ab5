"""The engine for arrays on a device: torch tensors, CuPy arrays, or any others of the array API."""

from rskc.engines.device.engine import DeviceEngine

__all__ = ["DeviceEngine"]
