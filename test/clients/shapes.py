"""Prints the types of the client package in the words of JSON Schema."""

import json
import typing

import gantry_client

NAMES = {str: "string", int: "integer", float: "number"}


def shape(kind: typing.Any) -> typing.Any:
    if typing.get_origin(kind) is list:
        return {"items": shape(typing.get_args(kind)[0])}
    if typing.get_origin(kind) is typing.Literal:
        return list(typing.get_args(kind))
    if kind in NAMES:
        return NAMES[kind]
    return {
        "fields": {name: shape(hint) for name, hint in typing.get_type_hints(kind).items()},
        "required": sorted(kind.__required_keys__),
    }


names = ["Result", "DetectionsMessage", "GapMessage", "PictureHeader"]
print(json.dumps({name: shape(getattr(gantry_client, name)) for name in names}))
