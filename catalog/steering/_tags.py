"""Which tags a TagRun or StopTagged node is given: the one reader that both share."""

from weft import ExecutionContext, InputError, normalise_tag


def tags_of(ctx: ExecutionContext) -> list[str]:
    """The inputs that the program created, in source order, then `tags`; made legal, each once.

    Raises InputError, naming the input: an empty text, something that is no text, or no tag at all.
    """
    texts = [(name, ctx.inputs.get(name, str)) for name in ctx.inputs.created()]
    texts += [(f"tags[{at}]", text) for at, text in enumerate(ctx.inputs.list("tags", str))]
    if not texts:
        raise InputError(
            f"`{ctx.node_id}` is given no tag",
            hint=f'create an input, as in `{ctx.node_type} {{ sender: message.sender }}`, or write `tags: ["…"]`',
        )
    tags: list[str] = []
    for name, text in texts:
        try:
            tags.append(normalise_tag(text))
        except InputError as error:
            raise InputError(f"the input `{name}` of `{ctx.node_id}`: {error.message}") from None
    return list(dict.fromkeys(tags))
