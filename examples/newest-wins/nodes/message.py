"""Where messages come from: here they are written in the program, or handed in with `--emit`."""

from typing import TypedDict

from weft import node


class Incoming(TypedDict):
    sender: str
    text: str


@node(pure=True)
async def message(sender: str, text: str) -> Incoming:
    """A message of somebody."""
    return {"sender": sender, "text": text}
