"""Node files: what is found in them, and what is said of those that cannot be loaded."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path

import pytest

from weft.lang.metadata import NodeTypes
from weft.nodes.api import NodeOutput
from weft.nodes.registry import Registry
from weft.testing import Rig


class Folder:
    """A project's `nodes` folder in the making."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, text: str) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text).lstrip("\n"), "utf-8")
        return file

    def load(self) -> Registry:
        return Registry.load([self.path])

    def problem(self, text: str) -> tuple[int, str, str | None]:
        """Line, message and hint of the one problem of a file with this text."""
        self.write("broken.py", text)
        self.write("good.py", GOOD)
        registry = self.load()
        assert "Good" in registry.names(), "a broken file does not hide the others"
        [problem] = registry.problems
        place, line, message = problem.message.split(":", 2)
        assert place.endswith("broken.py")
        return int(line), message.strip(), problem.hint


GOOD = '''
from weft import ExecutionContext, Node, NodeOutput

class Good(Node):
    """A good node."""
    class Inputs:
        text: str
    class Outputs:
        text: str
    async def run(self, ctx: ExecutionContext) -> None:
        await ctx.pulse_downstream(NodeOutput(text=ctx.inputs.get("text", str)))
'''


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "nodes").mkdir()
    return Folder(tmp_path / "nodes")


def test_what_a_folder_holds(folder: Folder) -> None:
    file = folder.write("good.py", GOOD)
    folder.write(
        "more.py",
        '''
        from __future__ import annotations
        from weft import node
        from weft import Node as Imported
        from ._shared import Base, loud

        @node
        async def make_title(text: str, extra: Later = "!") -> str:
            """Make a title."""
            return loud(text) + extra

        Later = str

        class Second(Base):
            """Second."""
            class Outputs:
                later: Later
        ''',
    )
    folder.write(
        "_shared.py",
        """
        from weft import Node
        class Base(Node):
            async def run(self, ctx): ...
        def loud(text):
            return text.upper()
        """,
    )
    folder.write("test_good.py", "raise AssertionError('a test is no node file')")
    folder.write("notes.txt", "no Python")
    registry = folder.load()
    assert registry.problems == []
    assert {"Good", "MakeTitle", "Second"} <= set(registry.names())
    assert "Base" not in registry.names()
    assert registry.file_of("Good") == file
    assert registry.names() == sorted(registry.names())
    good = registry.node_class("Good")
    assert good is not None and good.__name__ == "Good"
    spec = registry.spec("MakeTitle")
    assert spec is not None
    assert [(port.name, port.default) for port in spec.inputs][1] == ("extra", "!")
    types: NodeTypes = registry
    assert types.spec("Nothing") is None
    assert registry.node_class("Nothing") is None
    assert registry.file_of("Nothing") is None


async def test_a_loaded_node_runs(folder: Folder, rig: Rig) -> None:
    folder.write("good.py", GOOD)
    node = folder.load().node_class("Good")
    assert node is not None
    assert (await rig.run(node, {"text": "a"})).outputs == {"text": "a"}


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert Registry.load([tmp_path / "nodes"]).problems == []


def test_a_changed_file_is_read_again(folder: Folder) -> None:
    folder.write("good.py", GOOD)
    first = folder.load()
    folder.write("good.py", GOOD.replace("A good node", "A much better node"))
    spec = folder.load().spec("Good")
    assert spec is not None and spec.description == "A much better node."
    before = first.spec("Good")
    assert before is not None and before.description == "A good node."


def test_two_projects_may_have_a_node_of_one_name(tmp_path: Path) -> None:
    one, two = Folder(tmp_path / "one"), Folder(tmp_path / "two")
    one.write("good.py", GOOD)
    two.write("good.py", GOOD.replace("text:", "words:"))
    first, second = one.load(), two.load()
    assert first.problems == second.problems == []
    assert first.node_class("Good") is not second.node_class("Good")


NODE = '''
from typing import Any, TypedDict, TypeVar
from weft import CreatedInputs, Node, Port, PortsFromConfig, EntryKind, PortTemplate, node
class Row(TypedDict):
    text: str
class Broken(Node):
    """Broken."""
'''
RUN = "    async def run(self, ctx): ...\n"


@pytest.mark.parametrize(
    ("text", "line", "words", "hint"),
    [
        ("x = = 1\n", 1, "this is not Python: invalid syntax", None),
        ("import weft\n\nclass A(:\n", 3, "this is not Python", None),
        ("x = 1\nx.y\n", 2, "the file cannot be loaded: AttributeError: 'int' object has no attribute 'y'", None),
        ("x = 1\nimport there_is_no_such_module\n", 2, "No module named 'there_is_no_such_module'", "install it"),
        ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3", None),
        ("raise RuntimeError\n", 1, "the file cannot be loaded: RuntimeError", None),
        ("from weft import node\n@node(is_trigger=True)\nasync def f(): ...\n", 2, "argument 'is_trigger'", None),
        ("from weft import Nodes\n", 1, "cannot import name 'Nodes'", None),
        ("\0", 1, "null bytes", None),
    ],
)
def test_a_file_that_cannot_be_loaded(folder: Folder, text: str, line: int, words: str, hint: str | None) -> None:
    found_line, message, found_hint = folder.problem(text)
    assert (found_line, words in message) == (line, True), message
    assert (hint or "") in (found_hint or "")


@pytest.mark.parametrize(
    ("text", "line", "words", "hint"),
    [
        # The line is counted in NODE, whose class begins on line 5.
        (NODE.replace('    """Broken."""\n', "") + RUN, 5, "Broken has no docstring", "one sentence"),
        (NODE, 5, "Broken has no body", "async def run"),
        (NODE + "    retry = 3\n" + RUN, 7, "retry is a Retry, not 3", "Retry(attempts=3)"),
        (NODE + "    is_trigger = True\n" + RUN, 7, "sets is_trigger", "leave it out"),
        (NODE + "    def run(self, ctx): ...\n", 7, "not async", "async def run"),
        (NODE.replace("Broken(", "Loop(") + RUN, 5, "Loop is a word of the language", None),
        (NODE.replace("Broken(", "broken(") + RUN, 5, "broken cannot name a node type", "capital"),
        (NODE.replace("Broken(", "Bro__ken(") + RUN, 5, "Bro__ken cannot name", "single underscores"),
        (
            NODE + "    class Inputs:\n        a: str\n        b: set[str]\n" + RUN,
            9,
            "b: the language has no type for set[str]",
            "list",
        ),
        (NODE + "    class Inputs:\n        rows: list[Row]\n" + RUN, 8, "rows: Row is a record", "one port a field"),
        (NODE + "    class Outputs:\n        rows: Row\n" + RUN, 8, "rows: Row is a record", "one port a field"),
        (NODE + "    class Inputs:\n        _gate: str\n" + RUN, 8, "_gate cannot name a port", "begin with a letter"),
        (NODE + "    class Inputs:\n        a__b: str\n" + RUN, 8, "a__b cannot name a port", None),
        (NODE + "    class Inputs:\n        é: str\n" + RUN, 8, "é cannot name a port", "ASCII"),
        (
            NODE + "    class Inputs:\n        a: str\n        b = 3\n" + RUN,
            9,
            "b in Broken.Inputs has no type",
            "b: str",
        ),
        (NODE + "    class Inputs:\n        a: 'Nowhere'\n" + RUN, 7, "name 'Nowhere' is not defined", None),
        (
            NODE + "    class Inputs:\n        a: str = 3\n" + RUN,
            8,
            "default of a does not fit: it is a Number, not a String",
            None,
        ),
        (NODE + "    class Inputs:\n        a: str = None\n" + RUN, 8, "it is null, not a String", "required=False"),
        (NODE + "    class Inputs:\n        a: int = Port(0, ge=1)\n" + RUN, 8, "0 is below 1", None),
        (
            NODE + "    class Inputs:\n        a: int = Port(0, required=True)\n" + RUN,
            8,
            "a default and is required",
            None,
        ),
        (
            NODE + "    class Inputs:\n        a: int = Port(wire_only=True, literal_only=True)\n" + RUN,
            8,
            "neither a wire nor",
            None,
        ),
        (NODE + "    class Outputs:\n        a: int = 3\n" + RUN, 8, "no default and no rule", None),
        (NODE + "    class Outputs:\n        a: int = Port(ge=3)\n" + RUN, 8, "no default and no rule", None),
        (NODE + "    one_of_required = [('a',)]\n" + RUN, 7, "one_of_required names a, which is no input", None),
        (NODE + "    one_of_required = ('a', 'b')\n" + RUN, 7, "a list of groups", '[("a", "b")]'),
        (NODE + "    created_inputs = CreatedInputs(set)\n" + RUN, 7, "no type for set", "list"),
        (
            NODE + "    ports_from_config = PortsFromConfig('cases', [])\n" + RUN,
            7,
            "names cases, which is no input",
            None,
        ),
        (
            NODE
            + "    ports_from_config = PortsFromConfig(\n"
            + "        'c', [EntryKind('k', adds_outputs=[PortTemplate('p', set)])])\n"
            + RUN,
            7,
            "no type for set",
            None,
        ),
        (NODE + "    class Inputs:\n        a: TypeVar('Item')\n" + RUN, 8, "not Item", "TypeVar"),
    ],
    ids=lambda each: each if isinstance(each, str) and "\n" not in each else "",
)
def test_a_class_that_is_no_good_node(folder: Folder, text: str, line: int, words: str, hint: str | None) -> None:
    found_line, message, found_hint = folder.problem(text.lstrip("\n"))
    assert words in message
    assert found_line == line, message
    assert (hint or "") in (found_hint or "")


FUNCTION = """
from dataclasses import dataclass
from typing import Any
from weft import ExecutionContext, Port, node
@node
async def fetch(
"""


@pytest.mark.parametrize(
    ("text", "line", "words", "hint"),
    [
        ("    url: str,\n) -> str:\n    return url\n", 5, "Fetch has no docstring", None),
        ("    url,\n) -> str:\n    '''Fetch.'''\n", 6, "url has no type", "url: str"),
        ("    url: set,\n) -> str:\n    '''Fetch.'''\n", 6, "no type for set", "list"),
        ("    *urls: str,\n) -> str:\n    '''Fetch.'''\n", 5, "a parameter that can be named", "Node class"),
        ("    url: str,\n    /,\n) -> str:\n    '''Fetch.'''\n", 6, "a parameter that can be named", None),
        ("    ctx: ExecutionContext,\n) -> str:\n    '''Fetch.'''\n", 6, "not given the context", "Node class"),
        ("    url: str,\n):\n    '''Fetch.'''\n", 5, "fetch does not say what it returns", "-> str"),
        ("    url: str,\n) -> set:\n    '''Fetch.'''\n", 5, "value: the language has no type for set", None),
        ("    url: 'Nowhere',\n) -> str:\n    '''Fetch.'''\n", 5, "'Nowhere' is not defined", None),
        (
            "    url: str = Port(required=False),\n) -> str:\n    '''Fetch.'''\n",
            6,
            "url may have no value",
            "a default",
        ),
        ("    url: str = 3,\n) -> str:\n    '''Fetch.'''\n", 6, "the default of url does not fit", None),
    ],
    ids=lambda each: each if isinstance(each, str) and "\n" not in each else "",
)
def test_a_function_that_is_no_good_node(folder: Folder, text: str, line: int, words: str, hint: str | None) -> None:
    found_line, message, found_hint = folder.problem((FUNCTION + text).lstrip("\n"))
    assert words in message
    assert found_line == line, message
    assert (hint or "") in (found_hint or "")


def test_two_nodes_of_one_name(folder: Folder) -> None:
    folder.write("a.py", GOOD)
    folder.write("b.py", "\n\n" + GOOD.lstrip("\n"))
    registry = folder.load()
    [problem] = registry.problems
    assert "b.py:3:" in problem.message or "b.py:5:" in problem.message
    assert "there is a node type Good already, in " in problem.message
    assert "a.py" in problem.message
    assert registry.file_of("Good") == folder.path / "a.py"


def test_all_problems_are_told_at_once(folder: Folder) -> None:
    folder.write("a.py", "x = = 1")
    folder.write("b.py", NODE)
    folder.write("c.py", GOOD)
    folder.write("d.py", "import nothing_of_that_name")
    registry = folder.load()
    assert len(registry.problems) == 3
    assert "Good" in registry.names()


def test_a_class_defined_twice_is_one_node(folder: Folder) -> None:
    folder.write("a.py", GOOD + "\nAlias = Good\n")
    assert folder.load().problems == []


def test_the_catalog_loads_without_a_problem_and_fast() -> None:
    Registry.load()
    best = 1.0
    for _ in range(5):
        begun = time.perf_counter()
        registry = Registry.load()
        best = min(best, time.perf_counter() - begun)
    assert registry.problems == []
    assert best < 0.2, "40 ms on a quiet machine"


def test_a_node_output_is_built_up() -> None:
    output = NodeOutput(a=1).set("b", 2).update({"c": 3, "a": 4})
    assert output.values == {"a": 4, "b": 2, "c": 3}
    assert repr(output) == "NodeOutput(a=4, b=2, c=3)"
