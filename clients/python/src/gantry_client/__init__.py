"""Live detections of Gantry. See docs/clients.md of the project."""

from ._clock import ServiceClock
from ._connection import StreamState
from ._errors import GantryClientError
from ._messages import (
    Attribute,
    BoxPx,
    Detection,
    DetectionsMessage,
    Frame,
    GapMessage,
    Model,
    Owner,
    PictureHeader,
    PictureMessage,
    Result,
    StreamMessage,
    Timings,
)
from ._results import GantryApi
from ._stream import GantryStream, connect

__all__ = [
    "Attribute",
    "BoxPx",
    "Detection",
    "DetectionsMessage",
    "Frame",
    "GantryApi",
    "GantryClientError",
    "GantryStream",
    "GapMessage",
    "Model",
    "Owner",
    "PictureHeader",
    "PictureMessage",
    "Result",
    "ServiceClock",
    "StreamMessage",
    "StreamState",
    "Timings",
    "connect",
]
