"""Programs and node files that were edited or removed while a run waited, and runs that start runs by path."""

from __future__ import annotations

import pytest

from tests.cli.weft_process import Weft, until

REVIEW = '''\
"""A node that waits, then does its work."""

from weft import ExecutionContext, Form, Node, NodeOutput, forms


class Review(Node):
    """Ask, then say it louder."""

    class Inputs:
        text: str

    class Outputs:
        louder: str

    async def run(self, ctx: ExecutionContext) -> None:
        await ctx.await_signal(Form("Well?", [forms.text_input("note")]))
        await ctx.pulse_downstream(NodeOutput(louder=ctx.inputs.get("text", str).upper()))
'''

PROGRAM = """\
said = Give { value: "hello" }
review = Review { text: said.value }
show = Show { data: review.louder }
"""


def parked(weft: Weft) -> str:
    weft.write("nodes/review.py", REVIEW)
    weft.write("review.weft", PROGRAM)
    assert weft("run", "review.weft").status == 6
    return weft("executions", "--json").values[0]["run"]


def ended(weft: Weft, run: str) -> str:
    """Answer the form and let a worker go on; how the run ended."""
    weft("answer", run, "note=go on").ok()
    with weft.started("worker"):
        until(lambda: weft.status(run) in ("completed", "failed"))
    return weft("why", run).ok().stdout


def test_a_parked_run_goes_on_with_the_program_it_was_started_with(weft: Weft):
    run = parked(weft)
    (weft.folder / "review.weft").unlink()
    assert "has completed" in ended(weft, run)


def test_where_the_code_of_a_node_is_gone_the_run_fails_there_and_says_so(weft: Weft):
    run = parked(weft)
    (weft.folder / "nodes/review.py").unlink()
    assert "review" in weft("why", run).ok().stdout
    assert "node_suspended" in weft("events", run).ok().stdout
    assert "the code of the node type Review is gone" in ended(weft, run)


def test_a_run_whose_code_is_gone_can_still_be_stopped(weft: Weft):
    run = parked(weft)
    (weft.folder / "nodes/review.py").unlink()
    weft("stop", run).ok()
    assert weft("events", run).ok().stdout.splitlines()[-1].endswith("reason=Cancelled by user")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("text: str", "words: str", "it has no input `text` any more, it needs an input `words` now"),
        ("louder: str", "loud: str", "it has no output `louder` any more"),
    ],
    ids=["input", "output"],
)
def test_where_the_ports_of_a_node_no_longer_fit_the_run_fails_there_and_says_what_changed(
    weft: Weft, before: str, after: str, said: str
):
    run = parked(weft)
    weft.write("nodes/review.py", REVIEW.replace(before, after))
    told = ended(weft, run)
    assert f"the node type Review has changed since this run was started: {said}" in told
    failed = [each["node"] for each in weft("events", run, "--json").values if each["kind"] == "node_failed"]
    assert failed == ["review"]


def test_what_nothing_uses_may_change(weft: Weft):
    run = parked(weft)
    more = REVIEW.replace("text: str", "text: str\n        pitch: int = 3").replace(
        "louder: str", "louder: str\n        pitch: int"
    )
    weft.write("nodes/review.py", more)
    assert "has completed" in ended(weft, run)


CHILD = "say = Give\nshow = Show { data: say.value }\n"


def test_a_run_starts_another_with_values_for_its_inputs(weft: Weft):
    weft.write("flows/child.weft", CHILD)
    weft.write(
        "parent.weft",
        'child = StartRun { program: "flows/child.weft"  inputs: { "say": { "value": "given" } } }\n'
        "show = Show { data: child.status }",
    )
    done = weft("run", "parent.weft").ok()
    assert done.stdout.splitlines() == ["given", "completed"]


@pytest.mark.parametrize(
    ("program", "inputs", "said"),
    [
        ("flows/none.weft", "{}", "the program flows/none.weft cannot be read: no such file"),
        ("../child.weft", "{}", "the path must stay inside the project"),
        ("/etc/passwd", "{}", "the path must stay inside the project"),
        ("flows", "{}", "the program flows cannot be read: is a directory"),
        ("flows/broken.weft", "{}", "the program flows/broken.weft does not compile:"),
        ("flows/child.weft", "{}", "the program flows/child.weft does not compile:"),
        ("flows/child.weft", '{ "sya": { "value": "x" } }', "no node `sya`; did you mean `say`?"),
        ("flows/child.weft", '{ "say": { "vlue": "x" } }', "`say` has no input `vlue`; did you mean `value`?"),
        ("flows/child.weft", '{ "say": { "value": [1] } }', "`say.value` takes String"),
        ("flows/child.weft", '{ "show": { "data": 1 } }', "`show.data` is wired"),
        ("flows/child.weft", '{ "say": 1 }', "inputs"),
    ],
)
def test_a_program_that_cannot_be_started_so_fails_the_node_that_asked(
    weft: Weft, program: str, inputs: str, said: str
):
    weft.write("flows/child.weft", CHILD)
    weft.write("flows/broken.weft", "x = Nothing {\n")
    weft.write("parent.weft", f'child = StartRun {{ program: "{program}"  inputs: {inputs} }}')
    done = weft("run", "parent.weft")
    assert done.status == 1
    assert said in done.stderr and "Traceback" not in done.stderr
