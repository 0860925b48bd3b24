"""What a naive implementation of the language gets wrong at compile time: each statement a test, by its number in the
language's list; and faults that users of other graph languages met."""

from __future__ import annotations

import re
import time

import pytest

from tests.unit.lang.compiling import compiled, input_types, literal, node, output_types, port, program, slugs
from weft.lang.graph import MISSING


def created(text: str, id_: str) -> list[str]:
    return [each.name for each in node(program(text), id_).inputs if each.created]


def test_statement_24_created_inputs_stand_in_written_order_not_by_name() -> None:
    text = """
    a = Text { value: "a" }
    pick = FirstInOrder { zebra: a.value  mid: a.value  alpha: a.value }
    pick.beta = a.value
    """
    assert created(text, "pick") == ["zebra", "mid", "alpha", "beta"]
    earlier = 'p.last_by_name = a.value\na = Text { value: "a" }\np = FirstInOrder(z: String) { b: a.value z: a.value }'
    assert created(earlier, "p") == ["last_by_name", "z", "b"]


def test_statement_25_two_keys_on_one_line_are_told_apart_by_their_column() -> None:
    text = 'a = Text { value: "a" }\nq.y = a.value, q.x = a.value\nq = FirstInOrder { b: "1" a: "2" }'
    assert created(text, "q") == ["y", "x", "b", "a"]


def test_statement_29_a_hash_inside_a_value_is_no_comment() -> None:
    of = program('a = JsonObject { s: "a # b"  l: ["# c"]  h: ```\n# d\n```  # e\n}')
    assert (literal(of, "a.s"), literal(of, "a.l"), literal(of, "a.h")) == ("a # b", ["# c"], "# d")


@pytest.mark.parametrize("between", [" ", ", ", "\n", ",\n,"])
def test_statement_30_fields_need_neither_comma_nor_line_end(between: str) -> None:
    of = program(f'b = Text {{ value: "x" }}\na = JsonObject {{ a: 1{between}b: b.value{between}c: "z" }}')
    assert input_types(of, "a") == {"a": "Number", "b": "String", "c": "String"}


def test_statement_31_an_upper_case_name_with_a_port_is_a_wire() -> None:
    of = program('Upper = Text { value: "x" }\nshow = Debug { data: Upper.value }')
    assert [each.id for each in of.nodes] == ["Upper", "show"]
    assert (of.edges[0].source, of.edges[0].source_port) == ("Upper", "value")


def test_statement_32_a_heredoc_keeps_its_indentation_and_blanks() -> None:
    of = program("a = Text { value: ```\n    indented\n  \n\tx \n``` }")
    assert literal(of, "a.value") == "    indented\n  \n\tx "


def test_statement_33_an_unknown_escape_keeps_its_backslash() -> None:
    of = program(r'a = Text { value: "\x41 \u0041 \n \t \" \\ \q" }')
    assert literal(of, "a.value") == '\\x41 \\u0041 \n \t " \\ \\q'


@pytest.mark.parametrize("number", ["1e5", ".5", "3.", "+1", "1.2.3", "1-2", "-", "0x1", "1_000"])
def test_statement_34_what_is_no_number_of_the_language_is_refused(number: str) -> None:
    assert slugs(f"a = JsonObject {{ x: {number} }}") == ["parse"]


@pytest.mark.parametrize("value", ["[NaN]", "[Infinity]", '{ "a": 1, "a": 2 }', "[1,]", "{ 'a': 1 }"])
def test_statement_35_a_written_object_is_strict_json(value: str) -> None:
    assert "parse" in slugs(f"a = JsonObject {{ x: {value} }}")


def test_statement_35_so_is_one_in_a_file_or_in_a_text() -> None:
    for text in ('{"a": NaN}', '{"a": 1, "a": 2}'):
        assert slugs('a = HttpRequest { url: "u" body: @file("f.json", JsonDict) }', f_json=text) == ["enrich"]
        quoted = text.replace('"', '\\"')
        assert slugs(f'a = HttpRequest {{ url: "u" body: "{quoted}" }}') == ["config-type-mismatch"]


def test_statement_42_a_dict_is_a_json_dict_only_with_string_keys() -> None:
    into = 'a = ExecPython(o: JsonDict) { o: n.d code: "" }\nn = ExecPython -> (d: Dict[KEY, Number]) { code: "" }'
    assert slugs(into.replace("KEY", "String")) == []
    assert slugs(into.replace("KEY", "Number")) == ["type-mismatch"]


def test_statement_44_variables_bind_inside_containers_and_in_both_directions() -> None:
    of = program(
        """
        n = ExecPython -> (d: Dict[String, Number]) { code: "" }
        p = Pick { count: 1 first: "x" pair: n.d }
        forward = Debug { data: p.value }
        back = ExecPython(x: List[T]) -> (y: T) { x: [] code: "" }
        number = ExecPython(n: Number) { n: back.y code: "" }
        """
    )
    assert input_types(of, "p")["pair"] == "Dict[String, Number]"
    assert input_types(of, "forward") == {"data": "Number"}
    assert output_types(of, "back") == {"y": "Number"} and input_types(of, "back")["x"] == "List[Number]"


def test_statement_44_a_variable_is_never_bound_through_a_union_but_rewritten_in_one() -> None:
    source = 's = ExecPython -> (v: String | Null, w: String) { code: "" }\n'
    assert slugs(source + 'p = Pick { count: 1 first: "x" maybe: s.v }') == ["unresolved-typevar"]
    bound = source + ('p = Pick { count: 1 first: "x" maybe: s.v }\nn = ExecPython(t: String) { t: p.maybe code: "" }')
    assert input_types(program(bound), "p")["maybe"] == "String | Null"


def test_statement_44_each_node_has_variables_of_its_own() -> None:
    of = program(
        """
        s = ExecPython -> (t: String, n: Number) { code: "" }
        a = FirstInOrder { x: s.t }
        b = FirstInOrder { x: s.n }
        gated = FirstInOrder { x: s.n _should_flow: s.t }
        """
    )
    assert [output_types(of, id_)["value"] for id_ in ("a", "b", "gated")] == ["String", "Number", "Number"]
    assert port(of, "gated._should_flow").wired


def test_statement_45_a_written_value_of_a_wrong_type_is_an_error_on_an_optional_input_too() -> None:
    assert slugs('a = HttpRequest { url: "u" headers: 5 }') == ["config-type-mismatch"]


def test_statement_46_an_object_that_looks_like_a_marker_is_an_object() -> None:
    of = program('a = HttpRequest { url: "u" body: { "__file__": "x", "path": "y" } }')
    assert literal(of, "a.body") == {"__file__": "x", "path": "y"}


def test_statement_49_a_file_is_named_from_the_root_of_the_project() -> None:
    of = program('a = Text { value: @file("prompt.txt") }', prompt_txt="hi")
    assert literal(of, "a.value") == "hi"
    assert slugs('a = Text { value: @file("../prompt.txt") }') == ["enrich"]


def test_statement_50_a_file_read_as_text_is_not_trimmed() -> None:
    of = program('a = JsonObject { x: @file("a.txt") y: @file("a.txt", Number) }', a_txt="  42 \n")
    assert literal(of, "a.x") == "  42 \n" and literal(of, "a.y") == 42
    assert input_types(of, "a") == {"x": "String", "y": "Number"}


def test_statement_52_a_node_without_wires_or_consumers_is_normal() -> None:
    of = program('alone = ExecPython { code: "" }\nleaf = Text { value: "x" }')
    assert [each.id for each in of.nodes] == ["alone", "leaf"]


def test_statement_54_one_build_reports_all_that_is_wrong() -> None:
    text = """
    a = Txt { value: "x" }
    b = Text { valeu: "x" }
    c = Debug { data: ghost.value }
    d = Text { value: [1] _should_flow: 5 }
    e = HttpRequest { url: d.value method: "GTE" }
    f = ExecPython(x) { x: e.status code: "" }
    """
    assert sorted(slugs(text)) == sorted(
        [
            "unknown-type",
            "undeclared-port-no-custom",
            "required-port-unmet",
            "unknown-source-node",
            "config-type-mismatch",
            "gate-not-boolean",
            "literal-not-an-option",
            "enrich",
        ]
    )


def test_statement_55_a_warning_does_not_fail_a_build() -> None:
    result = compiled('a = HttpRequest { url: "u" body: null }')
    assert [each.severity for each in result.diagnostics] == ["warning"]
    assert result.ok and result.program is not None
    assert literal(result.program, "a.body") is MISSING


def test_statement_56_the_program_carries_the_domain_for_wired_values() -> None:
    of = program('n = ExecPython -> (n: Number) { code: "" }\np = Pick { first: "x" count: n.n }')
    domain = port(of, "p.count").domain
    assert domain is not None and (domain.minimum, domain.maximum, domain.whole) == (1, 10, True)
    assert literal(program('p = Pick { first: "x" count: 1 ratio: 0.123 }'), "p.ratio") == 0.123


def test_statement_64_a_deep_graph_compiles_and_so_does_a_deep_cycle() -> None:
    count = 3000
    chain = "".join(f"n{i} = Text {{ value: n{i - 1}.value }}\n" for i in range(1, count))
    assert len(program('n0 = Text { value: "x" }\n' + chain).nodes) == count
    cycle = compiled(f"n0 = Text {{ value: n{count - 1}.value }}\n" + chain)
    (told,) = [each for each in cycle.diagnostics if each.slug == "graph-cycle"]
    assert f"… {count - 11} more …" in told.message


def test_statement_65_the_same_text_gives_the_same_program_and_the_same_findings() -> None:
    text = "\n".join(f"n{i} = FirstInOrder {{ z: n{(i + 3) % 40}.value y: m{i}.value }}" for i in range(40))
    assert compiled(text).diagnostics == compiled(text).diagnostics
    text = 'a = Text { value: "x" }\n' + "\n".join(f"n{i} = FirstInOrder {{ z: a.value }}" for i in range(40))
    assert program(text).hash == program(text).hash


# --- faults of other graph languages ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ('t = Text { value "x" }', 18, "expected ':' after `value`, not `\"x\"`"),
        ("= Text {}", 1, "a name is missing before '='"),
        ("a.b = c", 7, "`c` is no value: a text stands in double quotes"),
        ("t = Text { value: % }", 19, "the character `%` (U+0025) means nothing here"),
    ],
)
def test_fault_b67_a_mistake_is_told_in_the_users_words_with_its_line_and_a_caret(
    text: str, column: int, message: str
) -> None:
    (told,) = compiled(text).diagnostics
    assert (told.file, told.line, told.column, told.slug) == ("main.weft", 1, column, "parse")
    assert message in told.message
    place, line, caret, *_ = told.render().splitlines()
    assert place.startswith(f"main.weft:1:{column}: error[parse]: ")
    assert line == f"  {text}" and caret.rstrip("^") == " " * (column + 1)
    assert not re.search(r"\b[A-Z]{3,}\b|__", told.message.replace("U+0025", "")), "no name of the grammar's own"


def test_fault_b70_twenty_thousand_lines_are_checked_in_time_that_grows_with_their_number() -> None:
    def seconds(count: int) -> float:
        text = 'n0 = Format { template: "x" }\n' + "".join(
            f"n{i} = Format {{\n  template: ```\nsee {{{{of}}}}\n```\n  of: n{i // 2}.text\n}}\n"
            for i in range(1, count)
        )
        started = time.process_time()
        assert len(program(text).nodes) == count
        return time.process_time() - started

    seconds(100)
    # Eight times the lines; a square would take sixty-four times as long.
    assert seconds(4_000) <= 24 * max(seconds(500), 0.01)


@pytest.mark.parametrize("name", ["group", "loop", "Loop1", "Groups", "trueish", "nullable", "in", "type", "True"])
def test_fault_b71_what_only_looks_like_a_reserved_word_is_a_name(name: str) -> None:
    of = program(f"{name} = JsonObject {{ {name}: 1 }}\nshow = Debug {{ data: {name}.value }}\n")
    assert of.nodes[0].id == name and input_types(of, name) == {name: "Number"}


@pytest.mark.parametrize("name", ["self", "Group", "Loop", "LoopIn", "LoopOut", "Passthrough", "true", "false", "null"])
def test_fault_b71_a_reserved_word_is_refused_by_its_name(name: str) -> None:
    for text in (f'{name} = Text {{ value: "x" }}', f"a = JsonObject {{ {name}: 1 }}"):
        if text.startswith("a") and name in ("self", "LoopIn", "LoopOut", "Passthrough"):
            assert slugs(text) == [], "these are no names of nodes, but ports may be called so"
            continue
        (told,) = compiled(text).diagnostics
        assert told.slug == "parse" and f"`{name}`" in f"{told.message} {told.hint}"


def test_fault_b72_nothing_written_twice_overwrites_silently_and_both_places_are_named() -> None:
    twice = compiled('a = Text {\n  value: "x"\n  value: "y"\n}')
    assert [each.slug for each in twice.diagnostics] == ["parse"]
    assert twice.diagnostics[0].line == 3 and "line 2" in twice.diagnostics[0].message
    names = compiled('ask = Text { value: "x" }\n\nask = Text { value: "y" }')
    assert names.diagnostics[0].line == 3 and "line 1" in names.diagnostics[0].message
    wires = compiled('a = Text { value: "x" }\nb = Not { value: true }\nc = Debug { data: a.value }\nc.data = b.value')
    assert [each.slug for each in wires.diagnostics] == ["duplicate-input-port"]
    assert wires.diagnostics[0].line == 4 and "line 3" in wires.diagnostics[0].message


def test_fault_b73_a_cycle_is_a_path_with_lines_and_a_misspelling_is_no_cycle() -> None:
    cycle = compiled("one = Text { value: two.value }\ntwo = Text { value: one.value }")
    assert "`one` (line 1) → `two` (line 2) → `one`" in cycle.diagnostics[0].message
    node_name = compiled("one = Text { value: tow.value }\ntwo = Text { value: one.value }")
    assert [(each.slug, each.hint) for each in node_name.diagnostics] == [
        ("unknown-source-node", "did you mean `two`?")
    ]
    port_name = compiled('one = Text { value: "x" }\ntwo = Text { value: one.vlaue }')
    assert [(each.slug, each.hint) for each in port_name.diagnostics] == [
        ("unknown-source-port", "did you mean `value`?")
    ]


def test_fault_b74_a_mistake_inside_a_json_value_is_on_its_own_line_in_a_file_too() -> None:
    value = '{\n  "a": 1,\n  "b": 2\n  "c": 3\n}'
    (told,) = compiled(f"a = JsonObject {{\n  x: {value}\n}}").diagnostics
    assert (told.line, told.column) == (4, 8) and "expected ',' or '}' after `2`" in told.message
    (told,) = compiled('a = JsonObject { x: @file("f.json", JsonDict) }', f_json=value).diagnostics
    assert (told.line, told.slug) == (1, "enrich")
    assert "`f.json`" in told.message and "at line 4" in told.message


@pytest.mark.parametrize(
    "spread",
    [
        'n = ExecPython(a: Number, b?: String) -> (c: Number) { a: 1, b: "x", code: "" }',
        "n = ExecPython(\n  a: Number # one\n  b?: String\n) -> (\n  # out\n  c: Number\n) {"
        '\n  a: 1 # one\n\n  b: "x"\n  code: ""\n}',
        'n = ExecPython(a: Number, b?: String)\n-> (c: Number) {\n  a: 1 b: "x"\n  code: "" }',
        'n = ExecPython(a: Number, b?: String) -> (c: Number) { code: "" }\nn.a = 1 # one\nn.b = "x"',
    ],
)
def test_fault_b75_one_line_or_many_give_the_same_graph_and_the_right_line(spread: str) -> None:
    one_line = 'n = ExecPython(a: Number, b?: String) -> (c: Number) { a: 1 b: "x" code: "" }'
    assert program(spread).hash == program(one_line).hash
    wrong = compiled(spread.replace("c: Number", "c: Numbr"))
    assert [each.line for each in wrong.diagnostics] == [spread[: spread.index("c: Number")].count("\n") + 1]


def test_fault_b76_a_list_is_never_taken_for_its_item() -> None:
    source = 's = ExecPython -> (l: List[String]) { code: "" }\n'
    direct = compiled(source + "t = Text { value: s.l }")
    assert [each.slug for each in direct.diagnostics] == ["type-mismatch"]
    assert "`s.l` is List[String], but `t.value` takes String" in direct.diagnostics[0].message
    generic = program(source + "f = FirstInOrder { x: s.l }\nd = Debug { data: f.value }")
    assert input_types(generic, "d") == {"data": "List[String]"}
    item = compiled(source + 'f = FirstInOrder { x: s.l y: "one" }')
    assert [each.slug for each in item.diagnostics] == ["config-type-mismatch"]
