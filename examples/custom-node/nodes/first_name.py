"""A function is enough where nothing of the run is needed."""

from weft import node


@node(pure=True)
async def first_name(full_name: str) -> str:
    """The first word of a name."""
    words = full_name.split()
    return words[0] if words else "stranger"
