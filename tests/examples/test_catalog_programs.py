"""The catalog's nodes in whole programs: what the language fixes about choosing, joining and absent values."""

from __future__ import annotations

import re
import time
from pathlib import Path

import psutil
import pytest

from tests.cli.weft_process import Weft, said


@pytest.fixture
def weft(database_url: str, tmp_path: Path) -> Weft:
    return Weft(database_url, tmp_path)


def shown(weft: Weft, program: str) -> set[str]:
    """What the Debug nodes of a program showed; the run must complete."""
    weft.write("main.weft", program)
    lines = weft("run", "main.weft").ok().stdout.splitlines()
    assert len(lines) == len(set(lines))
    return set(lines)


def test_a_switch_sends_the_run_one_way_and_first_in_order_joins_it_again(weft: Weft) -> None:
    program = """
    n = ExecPython -> (n: Number) { code: "return {'n': 7}" }
    way = Switch {
      value: n.n
      cases: [
        { "kind": "equals", "value": 1, "port": "one" },
        { "kind": "gt", "value": 5, "port": "many" },
        { "kind": "gt", "value": 6, "port": "late" },
        { "kind": "otherwise", "port": "rest" }
      ]
    }
    one = Text { _should_flow: way.one  value: "one" }
    many = Text { _should_flow: way.many  value: "many" }
    late = Text { _should_flow: way.late  value: "late" }
    rest = Text { _should_flow: way.rest  value: "rest" }
    first = FirstInOrder { z: one.value  y: late.value  x: many.value  a: rest.value }
    nothing = FirstInOrder { a: one.value  b: rest.value }
    show = Debug { data: first.value }
    never = Debug { data: nothing.value }
    """
    assert shown(weft, program) == {"many"}


def test_all_says_yes_or_nothing(weft: Weft) -> None:
    program = """
    said = ExecPython -> (yes: Boolean, no: Boolean, zero: Number, gone: Boolean) {
      code: "return {'yes': True, 'no': False, 'zero': 0}"
    }
    good = All { a: said.yes  b: said.zero }
    bad = All { a: said.yes  b: said.no }
    gone = All { a: said.yes  b: said.gone }
    turned = All { a: Not { value: said.no }.value }
    g = Debug { _should_flow: good.yes  data: "good" }
    b = Debug { _should_flow: bad.yes  data: "bad" }
    h = Debug { _should_flow: gone.yes  data: "gone" }
    t = Debug { _should_flow: turned.yes  data: "turned" }
    """
    assert shown(weft, program) == {"good", "turned"}


def test_an_optional_input_that_closes_is_none_for_python_and_empty_for_format(weft: Weft) -> None:
    program = """
    some = ExecPython -> (gone: String, here: String) { code: "return {'here': 'here'}" }
    seen = ExecPython(gone?: String, here: String) -> (text: String) {
      gone: some.gone
      here: some.here
      code: ```
        return {"text": f"{gone} {here}"}
      ```
    }
    text = Format { template: "[{{gone}}][{{here}}]"  gone?: some.gone  here: some.here }
    object = JsonObject { gone?: some.gone  here: some.here }
    list = List { gone?: some.gone  here: some.here }
    a = Debug { data: seen.text }
    b = Debug { data: text.text }
    c = Debug { data: object.value }
    d = Debug { data: list.value }
    """
    assert shown(weft, program) == {"None here", "[][here]", '{"here":"here"}', '["here"]'}


def test_created_inputs_keep_the_order_they_are_written_in(weft: Weft) -> None:
    program = """
    z = Text { value: "z" }
    a = Text { value: "a" }
    list = List { two: z.value one: a.value }
    list.zero = "last"
    object = JsonObject { two: z.value one: a.value }
    l = Debug { data: list.value }
    o = Debug { data: object.value }
    """
    assert shown(weft, program) == {'["z","a","last"]', '{"two":"z","one":"a"}'}


def test_cast_converts_between_nodes(weft: Weft) -> None:
    program = """
    text = Text { value: "[1, 2.5]" }
    numbers = Cast -> (value: List[Number]) { value: text.value }
    sum = ExecPython(numbers: List[Number]) -> (sum: Number) {
      numbers: numbers.value
      code: "return {'sum': sum(numbers)}"
    }
    again = Cast -> (value: String) { value: sum.sum }
    show = Debug { data: again.value }
    """
    assert shown(weft, program) == {"3.5"}


def test_a_failed_node_says_why_and_what_to_do_and_the_others_go_on(weft: Weft) -> None:
    weft.write(
        "main.weft",
        """
    bad = Format { template: "{{nane}}"  name: "x" }
    python = ExecPython -> (o: Number) { code: "return {'p': 1}" }
    other = Debug { data: "goes on" }
    """,
    )
    ran = weft("run", "main.weft")
    assert ran.status == 1
    assert ran.stdout == "goes on\n"
    assert "failed bad: the template has the placeholder `{{nane}}`, and there is no input of that name" in ran.stderr
    assert "hint: two braces that are meant as text are written as four" in ran.stderr
    assert (
        "failed python: the code returned the key `p`, which is no output; the declared outputs are `o`" in ran.stderr
    )
    assert "Traceback" not in ran.stderr


def test_a_busy_loop_holds_up_no_other_run_and_a_stop_ends_it(weft: Weft) -> None:
    weft.write("busy.weft", 'loop = ExecPython { code: "import os\\nprint(os.getpid())\\nwhile True: pass" }')
    weft.write("quick.weft", "quick = ExecPython -> (o: Number) { code: \"return {'o': 1}\" }")
    with weft.started("worker") as worker:
        said(worker, "serves")
        busy = [weft.queue("busy.weft", "--tag", "busy") for _ in range(3)]
        quick = weft.queue("quick.weft")
        assert weft("follow", quick, "--timeout", "30s").status == 0
        processes = {psutil.Process(_pid_in_log(weft, run)) for run in busy}
        assert weft("stop", "--tag", "busy", "--yes").status == 0
        assert {weft.status(run) for run in busy} == {"cancelled"}
        _, alive = psutil.wait_procs(processes, timeout=5)
        assert not alive


def _pid_in_log(weft: Weft, run: str) -> int:
    """The process id that a busy loop printed; it is stored a moment after the loop began."""
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        found = re.search(r"info loop: (\d+)", weft("logs", run).stdout)
        if found is not None:
            return int(found[1])
    raise AssertionError("the loop never printed its process id")
