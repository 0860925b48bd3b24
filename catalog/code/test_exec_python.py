from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from catalog.code import _pool
from catalog.code.exec_python import LINES, ExecPython
from weft import CreatedInputs
from weft.testing import CLOSED, Rig

ROOT = Path(__file__).parents[2]


async def run(rig, code: str, *, outputs: Any = (), **inputs: Any):
    return await rig.run(ExecPython, {"code": code, **inputs}, outputs=outputs)


async def failure(rig, code: str, *, outputs: Any = ("o",), **inputs: Any) -> str:
    outcome = await run(rig, code, outputs=outputs, **inputs)
    assert outcome.failed is not None, outcome.outputs
    assert outcome.closed == list(outputs)
    return outcome.failed.message


async def until(condition) -> None:
    with anyio.fail_after(10):
        while not condition():
            await anyio.sleep(0.005)


# --- in and out -------------------------------------------------------------------------------------------


async def test_inputs_are_names_and_outputs_are_what_it_returns(rig):
    outcome = await run(rig, "return {'total': a + b, 'text': t * 2}", outputs=("total", "text"), a=1, b=2.5, t="x")
    assert outcome.outputs == {"total": 3.5, "text": "xx"}


async def test_every_kind_of_value_goes_both_ways(rig):
    values = {"s": 'Zoë 🎈 \\ "', "i": 2**62, "f": 0.1, "b": True, "l": [1, [None]], "d": {"k": {"": []}}}
    code = "return {name: value for name, value in {**locals()}.items()}"
    outcome = await run(rig, code, outputs=tuple(values), **values)
    assert outcome.outputs == values
    assert outcome.outputs["b"] is True


async def test_a_none_or_missing_key_closes_its_port(rig):
    outcome = await run(rig, "return {'a': None, 'b': 0}", outputs=("a", "b", "c"))
    assert outcome.outputs == {"b": 0}
    assert set(outcome.closed) == {"a", "c"}


@pytest.mark.parametrize("code", ["", "return", "pass", "return None", "return {}", "x = 1", "# nothing"])
async def test_returning_nothing_closes_everything(rig, code):
    outcome = await run(rig, code, outputs=("a", "b"))
    assert outcome.failed is None
    assert set(outcome.closed) == {"a", "b"}


class WithOptionalInputs(ExecPython):
    """As a header with `a?: …` makes it, which the rig does not have."""

    created_inputs = CreatedInputs(required=False)


async def test_an_input_that_closed_is_none(rig):
    inputs = {"code": "return {'o': a is None and b == 1}", "a": CLOSED, "b": 1}
    assert (await rig.run(WithOptionalInputs, inputs, outputs=("o",))).outputs == {"o": True}


async def test_an_undeclared_key_is_an_error_that_names_it_and_the_declared_ones(rig):
    assert await failure(rig, "return {'c': 1}", outputs=("a", "b")) == (
        "the code returned the key `c`, which is no output; the declared outputs are `a`, `b`"
    )
    assert "declares no outputs" in await failure(rig, "return {'c': 1}", outputs=())


@pytest.mark.parametrize(
    ("code", "shown"), [("return 5", "`5`"), ("return 'text'", "`'text'`"), ("return [1]", "`[1]`")]
)
async def test_anything_but_an_object_is_an_error_that_shows_what_to_write(rig, code, shown):
    outcome = await run(rig, code, outputs=("total",))
    assert outcome.failed.message == f"the code returned {shown}, and not an object with a key for each output"
    assert 'return {"total": …}' in outcome.failed.error.hint


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("return {'o': {1, 2}}", "the returned value['o'] is a set, which is not JSON; return a list"),
        ("import datetime\nreturn {'o': [datetime.date(2020, 1, 1)]}", "['o'][0] is a date, which is not JSON"),
        ("import decimal\nreturn {'o': {'k': decimal.Decimal(1)}}", "['o']['k'] is a Decimal"),
        ("return {'o': b'x'}", "return text, such as its .decode()"),
        ("return {'o': {1: 2}}", "has the key 1, a int; JSON keys are strings"),
        ("return {'o': object()}", "is a object, which is not JSON"),
        ("x = []\nfor _ in range(300): x = [x]\nreturn {'o': x}", "nested deeper than 200 levels"),
        ("x = []\nx.append(x)\nreturn {'o': x}", "nested deeper than 200 levels"),
        ("yield 1", "the returned value is a generator"),
        ("async def f(): pass\nreturn f()", "use asyncio.run"),
        ("return {'o': float('nan')}", "cannot be stored: it is NaN"),
        ("return {'o': 2**80}", "cannot be stored"),
        ("return {'o': '\\ud800'}", "cannot be stored"),
        ("return {'o': 'a\\0b'}", "cannot be stored"),
    ],
)
async def test_what_it_returns_must_be_json(rig, code, said):
    assert said in await failure(rig, code)


async def test_tuples_and_subclasses_are_what_they_are_made_of(rig):
    code = "import enum, collections\nE = enum.IntEnum('E', 'a b')\nreturn {'o': (1, E.b, collections.Counter('xx'))}"
    assert (await run(rig, code, outputs=("o",))).outputs == {"o": [1, 2, {"x": 2}]}


async def test_a_value_of_another_type_than_declared_fails(rig):
    assert "is a String, not a Number" in await failure(rig, "return {'o': '1'}", outputs={"o": float})


async def test_an_input_named_like_a_word_of_python_is_refused(rig):
    assert "`class` is a word of Python" in await failure(rig, "return {}", **{"class": 1})


# --- the code itself --------------------------------------------------------------------------------------


async def test_is_the_body_of_a_function(rig):
    code = """
    # a comment first
    def twice(x):
        return x * n

    n += 1
    if n > 100: return {'o': 'early'}
    return {'o': [twice(each) for each in range(3)]}
    """
    assert (await run(rig, code, outputs=("o",), n=1)).outputs == {"o": [0, 2, 4]}


async def test_indented_code_keeps_its_strings(rig):
    code = "    text = '''one\n  two\n    '''\n    return {'o': text}\n"
    assert (await run(rig, code, outputs=("o",))).outputs == {"o": "one\n  two\n    "}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "x = 1\nreturn {'o': 1 / 0}",
            "ZeroDivisionError: division by zero (line 2 of the code: `return {'o': 1 / 0}`)",
        ),
        ("\n    a = 1\n    raise ValueError('no')\n", "ValueError: no (line 3 of the code: `raise ValueError('no')`)"),
        (
            "return {'o': nobody}",
            "NameError: name 'nobody' is not defined (line 1 of the code: `return {'o': nobody}`)",
        ),
        ("import json\n\njson.loads('{')", "(line 3 of the code: `json.loads('{')`)"),
        ("x = 1\nretrun x", "the code does not compile: invalid syntax (line 2 of the code: `retrun x`)"),
        ("    x = 1\n    y = = 2\n", "the code does not compile: invalid syntax (line 2 of the code: `y = = 2`)"),
        ("x = 1\n  y = 2", "the code does not compile: unexpected indent (line 2 of the code: `y = 2`)"),
        ("def f():\n    return f()\nf()", "RecursionError: maximum recursion depth exceeded"),
        ("raise SystemExit(3)", "SystemExit: 3 (line 1 of the code: `raise SystemExit(3)`)"),
        ("return {'o': input()}", "EOFError"),
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
    ],
)
async def test_what_it_raises_fails_the_node_with_the_line(rig, code, said):
    assert said in await failure(rig, code)


async def test_the_traceback_shows_the_authors_lines_alone(rig):
    outcome = await run(rig, "def read(text):\n    import json\n    return json.loads(text)\nreturn read('{')")
    assert outcome.failed.type == "JSONDecodeError"
    trace = outcome.failed.traceback
    assert 'File "<code>", line 4, in code' in trace
    assert 'File "<code>", line 3, in read' in trace
    assert "    return json.loads(text)" in trace
    assert "decoder.py" not in trace
    assert "_child.py" not in trace


async def test_prints_go_to_the_log_line_by_line(rig):
    code = "import sys\nprint('one\\ntwo')\nprint('no end', end='')\nprint('problem', file=sys.stderr)\nreturn {}"
    outcome = await run(rig, code)
    assert sorted(outcome.logs) == [("info", "no end"), ("info", "one"), ("info", "two"), ("warning", "problem")]


async def test_prints_are_kept_where_the_code_fails(rig):
    outcome = await run(rig, "print('before')\n1 / 0")
    assert outcome.failed is not None
    assert outcome.logs == [("info", "before")]


async def test_endless_prints_do_not_fill_the_journal(rig):
    outcome = await run(rig, f"for n in range({LINES} * 3): print(n)\nreturn {{}}")
    assert outcome.failed is None
    assert len(outcome.logs) == LINES + 1
    assert outcome.logs[-1] == ("warning", f"more than {LINES} lines were printed; the rest is not kept")


async def test_it_may_import_what_is_installed(rig):
    assert (await run(rig, "import anyio\nreturn {'o': anyio.__name__}", outputs=("o",))).outputs == {"o": "anyio"}


async def test_large_values_go_through(rig):
    text = "x" * 500_000
    assert (await run(rig, "return {'o': t}", outputs=("o",), t=text)).outputs == {"o": text}


# --- processes --------------------------------------------------------------------------------------------


async def test_runs_in_another_process_that_is_used_again(rig):
    pids = {(await run(rig, "import os\nreturn {'o': os.getpid()}", outputs=("o",))).outputs["o"] for _ in range(5)}
    assert len(pids) == 1
    assert pids != {os.getpid()}


async def test_names_of_one_call_are_gone_in_the_next(rig):
    await run(rig, "global left\nleft = 1\nreturn {}")
    assert "NameError" in await failure(rig, "return {'o': left}")


async def test_a_process_that_the_code_ends_fails_the_node_and_the_next_call_gets_another(rig):
    assert await failure(rig, "import os\nos._exit(3)") == "the code ended its process, with the exit status 3"
    outcome = await run(rig, "import os\nos.kill(os.getpid(), 9)")
    assert outcome.failed.message == "the process of the code was ended by SIGKILL"
    assert outcome.failed.error.hint == "perhaps the machine ran out of memory"
    assert (await run(rig, "return {'o': 1}", outputs=("o",))).outputs == {"o": 1}


async def test_a_process_with_threads_left_in_it_is_not_used_again(rig):
    code = (
        "import os, threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\nreturn {'o': os.getpid()}"
    )
    outcome = await run(rig, code, outputs=("o",))
    await until(lambda: not _running(outcome.outputs["o"]))
    assert (await run(rig, "return {'o': 1}", outputs=("o",))).outputs == {"o": 1}


async def test_a_stop_kills_the_process_and_what_it_started_in_the_middle_of_a_busy_loop(rig, tmp_path):
    pids = tmp_path / "pids"
    code = f"""
import os, subprocess
child = subprocess.Popen(["sleep", "100"])
open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{child.pid}} ")
while True: pass
"""
    task = rig.start(ExecPython, {"code": code})
    await until(lambda: pids.exists() and pids.read_text().endswith(" "))
    mine, child = (int(pid) for pid in pids.read_text().split())
    assert _running(mine)
    started = time.monotonic()
    rig.cancel()
    outcome = await task
    assert outcome.cancelled
    await until(lambda: not _running(mine) and not _running(child))
    assert time.monotonic() - started < 2


async def test_busy_loops_stop_neither_others_nor_the_event_loop(rig):
    busy = [_busy() for _ in range(8)]
    try:
        await until(lambda: _pool.pool()._count >= 8)
        longest = 0.0
        for _ in range(20):
            before = time.monotonic()
            assert (await run(rig, "return {'o': 1}", outputs=("o",))).outputs == {"o": 1}
            longest = max(longest, time.monotonic() - before)
        assert longest < 3
    finally:
        for task in busy:
            task.cancel()


def _busy():
    return Rig().start(ExecPython, {"code": "while True: pass"})


async def test_many_short_calls_share_a_few_processes(rig):
    done: list[int] = []

    async def one(number: int) -> None:
        async with _pool.pool().process() as process:
            done.append((await process.call("return {'n': n}", {"n": number}, _nowhere))["n"])

    async with anyio.create_task_group() as group:
        for number in range(300):
            group.start_soon(one, number)
    assert sorted(done) == list(range(300))
    assert _pool.pool()._count <= 16


async def _nowhere(level: str, line: str) -> None:
    pass


async def test_a_warm_call_takes_about_a_millisecond(rig):
    async with _pool.pool().process() as process:
        await process.call("return {}", {}, _nowhere)
        took = []
        for _ in range(50):
            before = time.perf_counter()
            await process.call("return {'n': n + 1}", {"n": 1}, _nowhere)
            took.append(time.perf_counter() - before)
    assert min(took) < 0.002


@pytest.mark.parametrize("busy", ["while True: pass", "sum(range(10**12))", "import time\ntime.sleep(100)"])
def test_a_process_dies_with_its_parent_whatever_it_is_doing(busy, tmp_path):
    started = tmp_path / "started"
    code = f"import os\nopen({str(started)!r}, 'w').write(str(os.getpid()) + ' ')\n{busy}"
    script = f"""
    import anyio
    from catalog.code.exec_python import ExecPython
    from weft.testing import Rig

    async def main():
        await Rig().run(ExecPython, {{"code": {code!r}}})

    anyio.run(main)
    """
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT)
    try:
        _wait(lambda: started.exists() and started.read_text().endswith(" "))
        pid = int(started.read_text())
        assert _running(pid)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    _wait(lambda: not _running(pid))


def _running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _wait(condition) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
