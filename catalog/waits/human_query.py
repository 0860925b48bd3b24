"""HumanQuery: asks a person, and waits for the answers."""

from typing import Any

from weft import Condition, ExecutionContext, Form, Node, NodeOutput, Port, PortsFromConfig, Rule, WaitTimedOut

from ._fields import FIELD_KINDS, form_fields, port_values
from ._timeout import TIMED_OUT, TIMEOUT_SECS, go_on_without, timeout_of


class HumanQuery(Node):
    """Show a form to a person and wait for the answers, for days if need be.

    Each field is an object with a `kind` and a `key`: `{ "kind": "approve_reject", "key": "ok" }`. `display` shows
    what comes on the input of its key. `text_input`, `textarea`, `select` and `multi_select` (with `options`) ask;
    `select_input` and `multi_select_input` take their options from an input, and `editable_text_input` and
    `editable_textarea` their text. Each answer goes out on the port of its key; `approve_reject` says true on
    `ok_approved` or on `ok_rejected`, and the other closes. A form that is skipped closes all ports.
    """

    class Inputs:
        title: str = Port(required=False, description="What stands above the form; the node's label otherwise.")
        description: str = Port(required=False, widget="textarea")
        timeoutSecs: float = TIMEOUT_SECS
        fields: list[dict[str, Any]] = Port(compiler_read=True)

    class Outputs:
        timedOut: bool = TIMED_OUT

    ports_from_config = PortsFromConfig("fields", FIELD_KINDS)
    validate = (Rule(Condition("config_nonempty", "fields"), "`fields` is empty: a form needs something to ask"),)

    async def run(self, ctx: ExecutionContext) -> None:
        fields = form_fields(ctx, ctx.inputs.get("fields", list[dict[str, Any]]))
        title = ctx.inputs.opt("title", str)
        form = Form(title if title and title.strip() else ctx.node_label, fields, ctx.inputs.opt("description", str))
        try:
            answers = await ctx.await_signal(form, timeout=timeout_of(ctx))
        except WaitTimedOut as error:
            await go_on_without(ctx, error)
        else:
            await ctx.pulse_downstream(NodeOutput().update(port_values(fields, answers)))
