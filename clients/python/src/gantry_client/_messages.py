"""What the stream says. Later versions of the service add fields and kinds of messages: unknown ones are passed over."""

from typing import List, Literal, TypedDict, Union


class BoxPx(TypedDict):
    """Box in pixels of the camera's picture, origin top-left."""

    x1: float
    y1: float
    x2: float
    y2: float


class _AttributeScore(TypedDict, total=False):
    score: float


class Attribute(_AttributeScore):
    """What later steps of the ensemble say of a detection, such as the colour of a helmet."""

    name: str
    value: str


class _MaybeOfDetection(TypedDict, total=False):
    trackId: int
    attributes: List[Attribute]


class Detection(_MaybeOfDetection):
    """One thing that was found. `score` is 0..1; `trackId` is stable over frames, when tracking is on."""

    label: str
    score: float
    boxPx: BoxPx


class Frame(TypedDict):
    widthPx: int
    heightPx: int
    quality: Literal["ok", "suspect"]


class Model(TypedDict):
    name: str
    version: str


class Timings(TypedDict):
    """Milliseconds."""

    queue: float
    infer: float
    postprocess: float
    captureToPublish: float


class Owner(TypedDict):
    """The node of a cluster that has the camera. Of two results the one with the lower generation is of a former owner."""

    node: str
    generation: int


class _MaybeOfResult(TypedDict, total=False):
    resultOfSeq: int
    traceparent: str
    owner: Owner


class Result(_MaybeOfResult):
    """What was found in one frame; the value of a Kafka record, too.

    `resultOfSeq` is the frame whose detections these are, when the scene had not changed since. `traceparent` is the span of a frame that is
    traced, by W3C Trace Context.
    """

    cameraId: str
    seq: int
    capturedAt: str
    ptsMs: float
    frame: Frame
    model: Model
    detections: List[Detection]
    timingsMs: Timings


class DetectionsMessage(Result):
    """A result of the live stream."""

    type: Literal["detections"]
    cursor: str


class GapMessage(TypedDict):
    """Told before the next message when something was left out for this client.

    `dropped` is 0 when it cannot be known. `slow_client`: this client read too slowly; `resume_expired`: it came back too late
    for what it missed.
    """

    type: Literal["gap"]
    dropped: int
    reason: Literal["slow_client", "resume_expired"]


class PictureHeader(TypedDict):
    """The `detections` message that follows a picture has the same `cameraId` and `seq`.

    Boxes are in source pixels: scale by `widthPx / sourceWidthPx` after shifting by `sourceXPx` and `sourceYPx`.
    """

    type: Literal["picture"]
    cameraId: str
    seq: int
    capturedAt: str
    widthPx: int
    heightPx: int
    sourceWidthPx: int
    sourceHeightPx: int
    sourceXPx: int
    sourceYPx: int
    mime: Literal["image/jpeg"]


class PictureMessage(TypedDict):
    type: Literal["picture"]
    header: PictureHeader
    jpeg: bytes


StreamMessage = Union[DetectionsMessage, GapMessage, PictureMessage]
