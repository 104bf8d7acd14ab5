"""The engine for arrays on a device: torch tensors, CuPy arrays, or any others of the array API."""

from rskc.engines.device.engine import DeviceEngine, quick_look
from rskc.engines.device.missing import DeviceMissingEngine

__all__ = ["DeviceEngine", "DeviceMissingEngine", "quick_look"]
