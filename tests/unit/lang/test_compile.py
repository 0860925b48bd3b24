"""From text to program: ports, values, wires and types as they come out."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from tests.unit.lang.compiling import compiled, input_types, literal, node, output_types, port, program, slugs
from weft.lang.compile import compile_source
from weft.lang.diagnostics import Source
from weft.lang.graph import MISSING, Edge, Program

EVERYTHING = """
# A program with a bit of everything.
greeting = Text {
  _label: "The greeting"
  _tags: ["support", "a-1", "support"]
  value: "hi"
}
ask = HttpRequest(body: JsonDict) -> (body: String) {
  url: "http://localhost"  headers: { "a": "1" }
  body: JsonObject { who: greeting.value  when?: 5 }.value
}
route = Switch {
  value: ask.body
  cases: [{ "kind": "equals", "value": "x", "port": "same" }, { "kind": "otherwise", "port": "rest" }]
}
show = Debug { data: ask.status  _should_flow: route.same }
rest = Pick { first: ask.body  count: "2"  _should_not_flow: false }
rest.second = greeting.value
"""


def test_a_program_comes_back_from_its_text() -> None:
    of = program(EVERYTHING)
    again = Program.from_text(of.text())
    assert again == of and again.hash == of.hash and again.text() == of.text()


def test_the_hash_knows_neither_layout_nor_comments_nor_where_a_wire_is_written() -> None:
    one = """
    a = Text { value: "x" }
    b = Debug { data: a.value _should_flow: a.value }
    """
    other = """
    # words
    a = Text { # more

      value: "x",
    }
    b = Debug
    b._should_flow = a.value
    b.data = a.value
    b.data = a.value  # the same wire once more
    """
    assert program(one).hash == program(other).hash
    assert program(one).hash != program(one.replace('"x"', '"y"')).hash


def test_nodes_stand_in_written_order_and_wires_in_the_order_of_the_inputs_they_feed() -> None:
    of = program(EVERYTHING)
    assert [each.id for each in of.nodes] == ["greeting", "ask", "ask__body", "route", "show", "rest"]
    assert of.edges == (
        Edge("ask__body", "value", "ask", "body"),
        Edge("greeting", "value", "ask__body", "who"),
        Edge("ask", "body", "route", "value"),
        Edge("ask", "status", "show", "data"),
        Edge("route", "same", "show", "_should_flow"),
        Edge("ask", "body", "rest", "first"),
        Edge("greeting", "value", "rest", "second"),
    )


def test_label_and_tags() -> None:
    greeting = node(program(EVERYTHING), "greeting")
    assert greeting.label == "The greeting" and greeting.tags == ("support", "a-1")
    assert node(program('a = Text { _label: ```\nlong\n``` value: "x" }'), "a").label == "long"


def test_gates_are_inputs_only_where_they_are_written() -> None:
    of = program(EVERYTHING)
    assert [each.name for each in node(of, "show").inputs] == ["data", "_should_flow"]
    gate = port(of, "show._should_flow")
    assert gate.wired and not gate.required
    assert port(of, "rest._should_not_flow").literal is False
    assert "_should_flow" not in input_types(of, "greeting")


def test_a_port_says_what_may_feed_it_and_what_stands_in() -> None:
    of = program('a = StopTagged { tags: ["x"] later: b.value }\nb = Text { value: "y" }\nc = HttpRequest { url: "u" }')
    assert port(of, "a.includeSelf").default is False and port(of, "a.includeSelf").literal is MISSING
    assert port(of, "a.later").created and port(of, "a.later").required and port(of, "a.later").wired
    assert port(of, "c.method").default == "GET" and not port(of, "c.method").required
    e = program('e = ExecPython { code: "" }')
    assert not port(e, "e.code").wire_capable
    assert not port(program(EVERYTHING), "route.cases").wire_capable
    assert port(program('p = Pick { first: "x" count: 1 later: "y" }'), "p.later").required_when_wired


# --- inline nodes -----------------------------------------------------------------------------------------


def test_inline_nodes_nest_and_stand_where_any_value_may() -> None:
    of = program(
        """
        a = Debug { data: FirstInOrder { x: Text { value: "deep" }.value }.value }
        b = Text
        b.value = Text { value: "line" }.value
        c = Text { value: "x" _should_flow: Not { value: true }.value  b._should_flow = a__data.value }
        """
    )
    assert {each.id: each.type for each in of.nodes} == {
        "a": "Debug",
        "a__data": "FirstInOrder",
        "a__data__x": "Text",
        "b": "Text",
        "b__value": "Text",
        "c": "Text",
        "c___should_flow": "Not",
    }
    assert input_types(of, "a") == {"data": "String"}
    assert Edge("a__data", "value", "b", "_should_flow") in of.edges


def test_inline_nodes_may_have_a_header() -> None:
    of = program('a = Debug { data: ExecPython(n: Number) -> (m: Number) { n: 1 code: "" }.m }')
    assert input_types(of, "a__data") == {"code": "String", "n": "Number"}
    assert input_types(of, "a") == {"data": "Number"}


# --- created inputs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ('"x"', "String"),
        ("5", "Number"),
        ("true", "Boolean"),
        ("[]", "List[Empty]"),
        ('[1, "a"]', "List[Number | String]"),
        ('{ "a": null }', "Dict[String, Null]"),
        ("s.list", "List[String]"),
        ('@file("f.json", JsonDict)', "JsonDict"),
        ('[@file("f.json")]', "List[String]"),
    ],
)
def test_a_created_input_has_the_type_of_what_feeds_it(value: str, type_: str) -> None:
    source = f's = ExecPython -> (list: List[String]) {{ code: "" }}\na = JsonObject {{ x: {value} }}'
    assert input_types(program(source, f_json="{}"), "a") == {"x": type_}


def test_created_inputs_are_required_unless_marked_or_the_type_says_so() -> None:
    of = program(
        'a = JsonObject { x: 1 y?: 2 }\nb = FirstInOrder { x: 1 }\nc = JsonObject(x?: String, y: String) { y: "1" }'
    )
    assert [port(of, name).required for name in ("a.x", "a.y", "b.x", "c.x", "c.y")] == [
        True,
        False,
        False,
        False,
        True,
    ]


def test_a_type_may_say_what_its_created_inputs_are() -> None:
    of = program('a = TagRun { user: 5 }\nn = ExecPython -> (n: Number) { code: "" }')
    assert literal(of, "a.user") == "5" and input_types(of, "a")["user"] == "String"
    assert slugs('a = TagRun { user: n.n }\nn = ExecPython -> (n: Number) { code: "" }') == ["type-mismatch"]
    shared = program('a = FirstInOrder { x: 1 y: n.s }\nn = ExecPython -> (s: Number | Null) { code: "" }')
    assert input_types(shared, "a") == {"x": "Number | Null", "y": "Number | Null"}


def test_a_variable_that_no_wire_binds_is_bound_by_a_written_value() -> None:
    of = program("a = FirstInOrder { x: 1 y: 2 }\nb = Debug { data: a.value }")
    assert input_types(of, "b") == {"data": "Number"}
    lists = program('a = List { x: [] y: ["s"] }\nb = Debug { data: a.value }')
    assert input_types(lists, "b") == {"data": "List[List[String]]"}


def test_what_is_open_and_not_wired_is_nobodys_business() -> None:
    of = program('a = ExecPython -> (v: T) { code: "" }\nb = Cast { value: Text { value: "x" }.value }')
    assert output_types(of, "a") == {"v": "T"} and output_types(of, "b") == {"value": "MustOverride"}


# --- headers ----------------------------------------------------------------------------------------------


def test_a_header_narrows_a_type_and_its_variable_everywhere_on_the_node() -> None:
    of = program('a = FirstInOrder -> (value: Number) { x: s.n }\ns = ExecPython -> (n: Number) { code: "" }')
    assert input_types(of, "a") == {"x": "Number"} and output_types(of, "a") == {"value": "Number"}
    listed = program(
        'p = Pick(pair: Dict[String, List[String]]) { count: 1 first: "x" pair: {} }\nd = Debug { data: p.value }'
    )
    assert input_types(listed, "d") == {"data": "List[String]"}


def test_a_header_says_whether_a_port_is_required() -> None:
    of = program("a = HttpRequest(body: JsonDict, url?: String) { body: {} }")
    assert port(of, "a.body").required and not port(of, "a.url").required
    assert not port(of, "a.body").created


def test_new_ports_of_a_header() -> None:
    of = program('a = ExecPython(x: String, y?: List[T]) -> (z: T) { x: "1" y: [1] code: "" }\nb = Debug { data: a.z }')
    assert input_types(of, "a") == {"code": "String", "x": "String", "y": "List[Number]"}
    assert [each.created for each in node(of, "a").inputs] == [False, True, True]
    assert input_types(of, "b") == {"data": "Number"}


def test_one_of_groups_of_the_type_and_of_the_program() -> None:
    of = program(
        'a = Pick { count: 1 first: "x" @require_one_of(second, first) }\n'
        'b = ExecPython(x?: String, y?: String, @require_one_of(x, y)) { @require_one_of(x) x: "1" code: "" }'
    )
    assert node(of, "a").one_of == (("first", "second"),)
    assert node(of, "b").one_of == (("x", "y"), ("x",))


# --- ports from a list ------------------------------------------------------------------------------------


def test_a_list_makes_ports() -> None:
    of = program(EVERYTHING)
    assert output_types(of, "route") == {"same": "Boolean", "rest": "Boolean"}
    form = program(
        'f = Form { fields: [{ "kind": "display", "key": "ctx" }, { "kind": "approve", "key": "ok" },'
        ' { "kind": "edit", "key": "text" }, { "kind": "display", "key": "more" }] ctx: 5 text: "x" }'
    )
    assert input_types(form, "f") == {
        "fields": "List[JsonDict]",
        "ctx": "Number",
        "text": "String",
        "more": "T_Auto",
    }
    assert [port(form, f"f.{name}").required for name in ("ctx", "text")] == [False, True]
    assert list(output_types(form, "f")) == ["ok_approved", "ok_rejected", "text"]


def test_the_list_may_stand_on_a_line_of_its_own() -> None:
    of = program('a = Switch { value: "x" }\na.cases = [{ "kind": "otherwise", "port": "p" }]\nb = Debug { data: a.p }')
    assert output_types(of, "a") == {"p": "Boolean"}


# --- written values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ('a = Pick { first: "x" count: "2" }', "a.count", 2),
        ("a = Text { value: 5 }", "a.value", "5"),
        ("a = Text { value: -0.0 }", "a.value", "-0.0"),
        ("a = Not { value: 1 }", "a.value", True),
        ('a = HttpRequest { url: "u" body: "{\\"a\\": [1]}" }', "a.body", {"a": [1]}),
        ('a = HttpRequest { url: "u" headers: { "n": 1, "t": true } }', "a.headers", {"n": "1", "t": "true"}),
        ('a = TagRun { tags: "[\\"x\\"]" }', "a.tags", ["x"]),
        ('a = Pick { first: "x" count: 1 either: null }', "a.either", None),
    ],
)
def test_a_written_value_is_cast_to_its_port(text: str, name: str, value: Any) -> None:
    found = literal(program(text), name)
    assert found == value and type(found) is type(value)


def test_the_collector_goes_on_after_a_compilation_whatever_happens() -> None:
    class Broken:
        def spec(self, type_name: str) -> None:
            raise LookupError(type_name)

        def names(self) -> list[str]:
            return []

    assert gc.isenabled()
    with pytest.raises(LookupError):
        compile_source(Source("x.weft", "a = Text"), Broken(), {})  # type: ignore[arg-type]
    assert gc.isenabled()


def test_an_empty_text_is_an_empty_program() -> None:
    for text in ("", "\n\n", "# only words\n"):
        of = program(text)
        assert of.nodes == () and of.edges == () and of.entry == "main.weft"


def test_thousands_of_unknown_names_are_told_in_good_time() -> None:
    lines = [f"node_number_{i} = Text {{ value: missing_number_{i}.value }}" for i in range(500)]
    assert len(compiled("\n".join(lines)).diagnostics) == 500


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ('a = Text { value: "x" }\nn = ExecPython(t: Number) { code: "" t: a.value }', "type-mismatch"),
        ('a = Text { value: "x" }\nc = Cast { value: a.value }\nd = Debug { data: c.value }', "must-override-unmet"),
        ('e = ExecPython { code: "" }\nd = Debug { data: e.total }', "unknown-source-port"),
    ],
)
def test_what_a_hint_says_to_write_compiles(text: str, slug: str) -> None:
    (told,) = compiled(text).diagnostics
    assert told.slug == slug and told.hint is not None
    written = told.hint.split("`")[1]
    head = written.partition(" = ")[0]
    lines = text.split("\n")
    if "." in head:
        lines = [line.replace(" t: a.value", "") for line in lines] + [written]
    else:
        at = next(i for i, line in enumerate(lines) if line.startswith(f"{head} = "))
        lines[at] = f"{written} {lines[at][lines[at].index('{') :]}"
    assert slugs("\n".join(lines)) == []


def test_everything_may_nest_as_deep_as_the_language_allows() -> None:
    depth = 200
    value = "[" * depth + "]" * depth
    type_ = "List[" * depth + "Number" + " | Null]" * depth
    of = program(f'a = ExecPython(x: {type_}) -> (y: {type_}) {{ x: {value} code: "" }}\nb = FirstInOrder {{ x: a.y }}')
    assert input_types(of, "b") == {"x": type_}
    json_text = value.replace('"', "")
    assert literal(program(f'a = ExecPython(x: {type_}) {{ x: "{json_text}" code: "" }}'), "a.x") == literal(of, "a.x")
    inline = "Text { value: " * 150 + '"x"' + " }.value" * 150
    assert len(program(f"a = Debug {{ data: {inline} }}").nodes) == 151


def test_a_deep_union_is_read_in_good_time() -> None:
    type_ = "String | Number"
    for level in range(60):
        type_ = f"List[{type_}]" if level % 2 else f"Dict[String, {type_} | Null] | Boolean"
    text = (
        f'a = ExecPython -> (v: {type_}) {{ code: "" }}\nb = FirstInOrder {{ x: a.v }}\nc = Debug {{ data: b.value }}'
    )
    assert slugs(text) == []
