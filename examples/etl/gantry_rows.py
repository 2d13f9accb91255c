"""Rows of detections, as `gantry batch` writes them to Parquet: asks a model server for each picture."""

import io
from dataclasses import dataclass
from typing import Iterator, Optional

import numpy as np
import tritonclient.http as kserve
from PIL import Image

#: Columns in their order, with the type of each in Parquet.
COLUMNS = {
    "item": "string",
    "file": "string",
    "frame": "int32",
    "time_ms": "float64",
    "width_px": "int32",
    "height_px": "int32",
    "label": "string",
    "score": "float32",
    "x1": "float32",
    "y1": "float32",
    "x2": "float32",
    "y2": "float32",
    "attributes": "string",
}
#: Columns that a row always has.
REQUIRED = ("item", "file", "width_px", "height_px")


@dataclass(frozen=True)
class ModelServer:
    """Where the model is, and what its classes are called: a server does not tell."""

    url: str  # host:port
    model: str
    labels: "tuple[str, ...]"
    token: Optional[str] = None


class PictureRows:
    """Asks the server for pictures, one after another over one connection. One for each worker; it is not shared."""

    def __init__(self, server: ModelServer) -> None:
        self._server = server
        self._client = kserve.InferenceServerClient(server.url, network_timeout=60.0, connection_timeout=10.0)
        self._headers = {} if server.token is None else {"Authorization": f"Bearer {server.token}"}

    def close(self) -> None:
        self._client.close()

    def rows(self, name: str, picture: bytes) -> "list[dict]":
        """A row for each detection, or one without a label. Raises what the server says of a picture that it cannot decode."""
        file = kserve.InferInput("file", [1], "BYTES")
        file.set_data_from_numpy(np.array([picture], dtype=object), binary_data=True)
        answer = self._client.infer(self._server.model, [file], headers=self._headers)
        width, height = shown_size(picture)
        seen = {"item": name, "file": name, "frame": None, "time_ms": None, "width_px": width, "height_px": height}
        found = [{**seen, **detection} for detection in self._detections(answer.as_numpy("detections"))]
        return found or [{**seen, **dict.fromkeys(("label", "score", "x1", "y1", "x2", "y2", "attributes"))}]

    def _detections(self, boxes: np.ndarray) -> "Iterator[dict]":
        for x1, y1, x2, y2, score, number in boxes.reshape(-1, 6).tolist():
            known = 0 <= int(number) < len(self._server.labels)
            label = self._server.labels[int(number)] if known else f"class_{int(number)}"
            yield {"label": label, "score": score, "x1": x1, "y1": y1, "x2": x2, "y2": y2, "attributes": None}


def shown_size(picture: bytes) -> "tuple[int, int]":
    """Width and height, turned as the EXIF orientation says; the pixels are not decoded."""
    with Image.open(io.BytesIO(picture)) as image:
        turned = image.getexif().get(0x0112, 1) in (5, 6, 7, 8)
        return (image.height, image.width) if turned else (image.width, image.height)


def read_labels(path: str) -> "tuple[str, ...]":
    with open(path, encoding="utf-8") as lines:
        return tuple(line.rstrip("\r\n") for line in lines if line.strip())


def is_picture(path: str) -> bool:
    return path.lower().endswith((".jpg", ".jpeg", ".png"))
