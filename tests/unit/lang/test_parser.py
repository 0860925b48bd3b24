"""What the tree of a text is: every form, however it is laid out, with the places and the values that it stands for."""

from __future__ import annotations

import gc
import itertools
from typing import Any

import pytest

from tests.unit.lang.trees import errors, only_error, shape, spans, tree
from weft.lang.diagnostics import Source
from weft.lang.parser import parse
from weft.lang.syntax import (
    AssetMarker,
    ContainerDecl,
    DictTypeExpr,
    Field,
    FileMarker,
    GeneratorTypeExpr,
    IncludeDecl,
    Inline,
    ListTypeExpr,
    NamedTypeExpr,
    NodeDecl,
    OneOf,
    RecordTypeExpr,
    Scalar,
    TypeDecl,
    TypeExpr,
    UnionTypeExpr,
    Wire,
    WireLine,
    plain,
)


def node(text: str) -> NodeDecl:
    (item,) = tree(text).items
    assert isinstance(item, NodeDecl)
    return item


def value(written: str) -> Any:
    """What `n = T { x: … }` gives its field."""
    body = node(f"n = T {{ x: {written} }}").body
    assert body is not None
    (field,) = body.entries
    assert isinstance(field, Field)
    return field.value


def type_(written: str) -> TypeExpr:
    signature = node(f"n = T(x: {written})").signature
    assert signature is not None and signature.inputs[0].type is not None
    return signature.inputs[0].type


# --- forms ------------------------------------------------------------------------------------------------


def test_a_node_may_be_bare() -> None:
    item = node("n = Text")
    assert (item.id.text, item.type.text, item.signature, item.body) == ("n", "Text", None, None)
    assert node("n = Text {}").body is not None


def test_a_signature_has_inputs_outputs_and_alternatives() -> None:
    signature = node("n = T(a: String, b?: Number c d? @require_one_of(b, d)) -> (o: Boolean, p)").signature
    assert signature is not None
    assert [(port.name.text, port.optional, port.type is None) for port in signature.inputs] == [
        ("a", False, False),
        ("b", True, False),
        ("c", False, True),
        ("d", True, True),
    ]
    assert [(port.name.text, port.type is None) for port in signature.outputs] == [("o", False), ("p", True)]
    assert [[name.text for name in each.ports] for each in signature.one_of] == [["b", "d"]]


def test_outputs_stand_alone_or_on_the_next_line() -> None:
    for written in ("n = T -> (o: String)", "n = T\n-> (o: String)", "n = T # why\n# because\n-> (o: String)"):
        signature = node(written).signature
        assert signature is not None and [port.name.text for port in signature.outputs] == ["o"]


def test_a_body_keeps_its_entries_in_written_order() -> None:
    body = node("n = T { a: 1, b?: x.y @require_one_of(a, b) m.c = x.y, d: 2 }").body
    assert body is not None
    kinds = [type(entry) for entry in body.entries]
    assert kinds == [Field, Field, OneOf, WireLine, Field]
    assert [entry.optional for entry in body.entries if isinstance(entry, Field)] == [False, True, False]


def test_wires_read_keys() -> None:
    wire = value("src.port.first . second")
    assert isinstance(wire, Wire)
    assert (wire.node.text, wire.port.text, [key.text for key in wire.keys]) == ("src", "port", ["first", "second"])
    assert isinstance(value("Upper.port"), Wire), "an upper-case letter alone makes no inline node"


def test_a_line_of_its_own_is_a_wire_or_a_value() -> None:
    lines = tree("n.a = m.b.c\nn.a2 = 5\nn = T").items
    assert [type(line) for line in lines] == [WireLine, WireLine, NodeDecl]


def test_inline_nodes_nest() -> None:
    outer = value("A(p: String) -> (q: String) { r: B { s: 1 }.t }.q")
    assert isinstance(outer, Inline) and outer.body is not None
    (field,) = outer.body.entries
    assert isinstance(field, Field) and isinstance(field.value, Inline)
    assert (outer.type.text, outer.port.text, field.value.type.text, field.value.port.text) == ("A", "q", "B", "t")
    bare = value("C -> (d: String).d")
    assert isinstance(bare, Inline) and bare.body is None and bare.signature is not None


def test_groups_and_loops_hold_gates_settings_and_items() -> None:
    group, loop = tree(
        "g = Group(a: String) -> (b: String) { _should_flow: x.y  n = T, self.b = n.o  type P = String }\n"
        'l = Loop { parallel: true over: ["v"] m = T\n part = @include("p.weft")\n inner = Group {} }'
    ).items
    assert isinstance(group, ContainerDecl) and isinstance(loop, ContainerDecl)
    assert (group.kind, loop.kind) == ("group", "loop")
    assert [field.name.text for field in group.fields] == ["_should_flow"]
    assert [type(item) for item in group.items] == [NodeDecl, WireLine, TypeDecl]
    assert [field.name.text for field in loop.fields] == ["parallel", "over"]
    assert [type(item) for item in loop.items] == [NodeDecl, IncludeDecl, ContainerDecl]


@pytest.mark.parametrize(
    ("written", "description"),
    [
        ("{\n  # What it does\n  # and more\n  n = T\n}", "What it does"),
        ("{ # What it does\n  n = T }", "What it does"),
        ("{\n  n = T # not this\n  # nor this\n}", None),
        ("{}", None),
        ("{\n  x = Group {\n    # the inner one\n  }\n}", None),
    ],
)
def test_the_first_comment_in_the_braces_describes_a_group(written: str, description: str | None) -> None:
    (group,) = tree(f"g = Group {written}\n# after").items
    assert isinstance(group, ContainerDecl) and group.description == description


def test_an_included_file_is_one_group_without_a_name() -> None:
    file = tree("# before\nGroup(a: String) { n = T }\n# after", included=True)
    assert file.root is not None and file.root.id is None and len(file.root.items) == 1 and file.items == []


def test_type_is_a_word_like_any_other_but_before_a_name() -> None:
    declared, named, wired = tree("type Ticket = { id: String }\ntype = Text { type: 1 }\ntype.value2 = a.b").items
    assert isinstance(declared, TypeDecl) and isinstance(declared.type, RecordTypeExpr)
    assert isinstance(named, NodeDecl) and isinstance(wired, WireLine)


def test_types_of_every_form() -> None:
    union = type_("String | List[T1] | (Number | Null)")
    assert isinstance(union, UnionTypeExpr)
    assert [type(member) for member in union.members] == [NamedTypeExpr, ListTypeExpr, UnionTypeExpr]
    assert isinstance(type_("Dict[String, Generator[A]]"), DictTypeExpr)
    assert isinstance(type_("Generator[A]"), GeneratorTypeExpr)
    record = type_("{ a: String, b?: { c: Number } }")
    assert isinstance(record, RecordTypeExpr)
    assert [(field.name.text, field.optional) for field in record.fields] == [("a", False), ("b", True)]


def test_markers_hold_a_path_and_perhaps_a_type() -> None:
    marker = value('@file("dir/a b.json", List[Number])')
    assert isinstance(marker, FileMarker) and marker.path == "dir/a b.json" and isinstance(marker.type, ListTypeExpr)
    asset = value('@asset("https://a.example/x.png")')
    assert isinstance(asset, AssetMarker) and asset.type is None
    inside = value('{ "a": [@file("x"), 1] }')
    assert isinstance(inside.entries[0][1].items[0], FileMarker)


# --- values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('"a # b"', "a # b"),
        (r'"\n\t\r\"\\"', '\n\t\r"\\'),
        (r'"\x41 \u00e9 \q \/"', r"\x41 \u00e9 \q \/"),
        (r'"ends with \\"', "ends with \\"),
        ('"tab\there, é and 😀"', "tab\there, é and 😀"),
        ("```one line```", "one line"),
        ("```\n  kept\n    as it is # too\n```", "  kept\n    as it is # too"),
        ("```\n\ntwo\n\n```", "\ntwo\n"),
        ("```\r\nwindows\r\n```", "windows"),
        (r"``` \n \``` \` ` `` ```", r" \n ``` \` ` `` "),
        ("``````", ""),
        ("```\n```", ""),
        ("0", 0),
        ("-12", -12),
        ("007", 7),
        ("1.50", 1.5),
        ("-0.25", -0.25),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", float(2**63)),
        ("1" * 300, float("1" * 300)),
        ("true", True),
        ("false", False),
        ("null", None),
        ("[]", []),
        ("{}", {}),
        ('[1e5, -2.5E+3, "\\u00e9\\/", null, [true, {"a": {}}]]', [1e5, -2500.0, "é/", None, [True, {"a": {}}]]),
        ('["\\ud83d\\ude00"]', ["😀"]),
        ('{\n"a"\n:\n1\n,\n"# b": 2 }', {"a": 1, "# b": 2}),
    ],
)
def test_a_written_value_stands_for(written: str, expected: object) -> None:
    found = plain(value(written))
    assert found == expected and type(found) is type(expected)


def test_a_number_that_no_double_holds_is_refused() -> None:
    assert "finite" in only_error("n = T { x: " + "9" * 400 + " }").message
    assert "finite" in only_error("n = T { x: [-1e400] }").message
    assert "finite" in only_error("n = T { x: " + "9" * 100_000 + " }").message


def test_kinds_of_scalars_are_kept() -> None:
    assert [value(each).kind for each in ('"x"', "```x```", "1", "true", "null")] == [
        "string",
        "heredoc",
        "number",
        "boolean",
        "null",
    ]


# --- places and comments ----------------------------------------------------------------------------------


def test_every_part_lies_where_it_was_written() -> None:
    text = (
        '# é😀\nm = T { s: "é😀" }\n'
        "n = T(a: List[String]) -> (o) { x: m.p.k  y: U { z: [1, 2] }.w }\n"
        'n.q = { "k": @file("f") }'
    )
    found = spans(tree(text).items, text)
    for kind, part in [
        ("NodeDecl", 'm = T { s: "é😀" }'),
        ("Scalar", '"é😀"'),
        ("NodeDecl", "n = T(a: List[String]) -> (o) { x: m.p.k  y: U { z: [1, 2] }.w }"),
        ("Signature", "(a: List[String]) -> (o)"),
        ("PortDecl", "a: List[String]"),
        ("ListTypeExpr", "List[String]"),
        ("Body", "{ x: m.p.k  y: U { z: [1, 2] }.w }"),
        ("Field", "x: m.p.k"),
        ("Wire", "m.p.k"),
        ("Name", "k"),
        ("Inline", "U { z: [1, 2] }.w"),
        ("ListValue", "[1, 2]"),
        ("WireLine", 'n.q = { "k": @file("f") }'),
        ("FileMarker", '@file("f")'),
    ]:
        assert (kind, part) in found


def test_every_comment_is_kept_in_order() -> None:
    file = tree('# a\nn = T { # b\n  x: "# no" # c\r\n} # d\n#\nm = T # e\n# f')
    assert [comment.text for comment in file.comments] == ["# a", "# b", "# c", "# d", "#", "# e", "# f"]
    for comment in file.comments:
        assert file.source.text[comment.span.start : comment.span.end] == comment.text


def test_comments_are_kept_once_around_a_mistake() -> None:
    file, _ = parse(Source("x", "# a\nn T # b\n# c\nm = T { # d\n  x raw # e\n  # f\n}\n# g"))
    assert [comment.text for comment in file.comments] == ["# a", "# b", "# c", "# d", "# e", "# f", "# g"]


# --- layout -----------------------------------------------------------------------------------------------

FORMS = [
    ["n", "=", "T"],
    ["n", "=", "T", "{", "}"],
    ["n", "=", "T", "(", "a", ":", "String", ",", "b", "?", ":", "List", "[", "T1", "]", ")", "{", "x", ":", "1", "}"],
    ["n", "=", "T", "(", ")", "->", "(", "o", ":", "{", "a", ":", "A", ",", "b", "?", ":", "B", "}", "|", "C", ")"],
    ["n", "=", "T", "->", "(", "o", ",", "p", ")", "{", "x", ":", "a.b", "y", "?", ":", '"s"', "m.p", "=", "a.b", "}"],
    ["n", "=", "T", "{", "x", ":", "[", "1", ",", "{", '"k"', ":", "null", "}", "]", ",", "y", ":", "```h\nh```", "}"],
    ["n", "=", "T", "{", "x", ":", "U", "{", "y", ":", "V", "(", "a", ")", ".", "o", "}", ".", "p", "}"],
    ["g", "=", "Group", "(", "a", ")", "->", "(", "b", ")", "{", "_should_flow", ":", "true", "}"],
    ["l", "=", "Loop", "{", "over", ":", "[", '"v"', "]", "max_iters", ":", "3", "n", "=", "T", "{", "}", "}"],
    ["type ", "A", "=", "{", "a", ":", "List", "[", "String", "]", "}"],
]


def laid_out(form: list[str], gap: str) -> str:
    """The words of a form with a gap between any two that allow a line end between them."""
    written, depth, in_json = form[0], 0, False
    for before, word in itertools.pairwise(form):
        opens_body = word == "{" and before not in (":", "[", ",", "=", "|", "(")
        in_json = in_json or (before == ":" and word == "[")
        keeps = opens_body or before == "=" or word in ("=", "->") or before.endswith(" ")
        if in_json and "#" in gap:
            keeps = True
        if depth == 0 and word not in (")", "}") and not opens_body:
            keeps = True
        written += (" " if keeps else gap) + word
        depth += (word in "({[") - (word in ")}]")
        in_json = in_json and word != "]"
    return written


@pytest.mark.parametrize("form", FORMS, ids=lambda form: " ".join(form)[:40])
@pytest.mark.parametrize("gap", ["\n", "\r\n", "\t", "\n\n  ", " # words\n", "  "], ids=repr)
def test_the_layout_of_a_form_does_not_change_its_tree(form: list[str], gap: str) -> None:
    on_one_line = " ".join(form)
    assert shape(tree(laid_out(form, gap)).items) == shape(tree(on_one_line).items)


def test_line_ends_of_any_kind_give_one_tree() -> None:
    text = 'a = T {\n  x: "1"\n  y: [\n1,\n2]\n}\n\nb = T(c: String)\n-> (d: A)\nb.c = a.x # e\n'
    assert shape(tree(text.replace("\n", "\r\n")).items) == shape(tree(text).items)
    assert shape(tree(text.replace("  ", "\t")).items) == shape(tree(text).items)


def test_a_lone_carriage_return_ends_a_comment() -> None:
    assert len(tree("# words\ra = T").items) == 1


def test_fields_need_neither_commas_nor_line_ends() -> None:
    one, *others = (
        shape(tree(f"n = T {{{inside}}}").items)
        for inside in (
            " a: 1 b: x.y c: U{d: 2}.e ",
            "a:1,b:x.y,c:U{d:2}.e",
            "\na: 1\nb: x.y\nc: U { d: 2 }.e\n",
            ",,a:1,,b:x.y c:U{d:2}.e,",
        )
    )
    assert all(other == one for other in others)


def test_a_comma_separates_declarations() -> None:
    assert len(tree("a = T, b = T {}, a.x = 1,, c = Group {}").items) == 4


# --- depth ------------------------------------------------------------------------------------------------

NESTS = {
    "lists": ("n = T { x: ", "[", "", "]", " }"),
    "objects": ("n = T { x: ", '{"a": ', "1", "}", " }"),
    "lists and objects": ("n = T { x: ", '[{"a": [', "1", "]}]", " }"),
    "types": ("n = T(x: ", "List[", "String", "]", ")"),
    "records": ("type A = ", "{a: ", "String", "}", ""),
    "parentheses": ("n = T(x: ", "(", "String", ")", ")"),
    "groups": ("", "g = Group { ", "n = T", " }", ""),
    "inline nodes": ("n = T ", "{ x: T ", "{ x: 1 }", ".o }", ""),
}
PER_LEVEL = {"lists and objects": 3}


def nested(kind: str, levels: int) -> str:
    before, opener, inside, closer, after = NESTS[kind]
    times = levels // PER_LEVEL.get(kind, 1)
    return before + opener * times + inside + closer * times + after


@pytest.mark.parametrize("kind", NESTS)
def test_two_hundred_levels_are_read(kind: str) -> None:
    assert errors(nested(kind, 198)) == []


@pytest.mark.parametrize("kind", NESTS)
@pytest.mark.parametrize("levels", [204, 1_000, 30_000])
def test_deeper_ones_are_one_error(kind: str, levels: int) -> None:
    error = only_error(nested(kind, levels) + "\nm = T")
    assert error.slug == "nesting-too-deep" and "200" in error.message


def test_the_bracket_that_is_one_too_many_is_pointed_at() -> None:
    assert errors("n = T { x: " + "[" * 200 + "]" * 200 + " }") == []
    error = only_error("n = T { x: " + "[" * 201 + "]" * 201 + " }")
    assert error.column == len("n = T { x: ") + 201


# --- manners ----------------------------------------------------------------------------------------------


def test_the_collector_is_left_as_it_was() -> None:
    assert gc.isenabled()
    tree("n = T")
    assert gc.isenabled()
    gc.disable()
    try:
        tree("n = T")
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_one_parse_leaves_nothing_for_the_next() -> None:
    assert errors("n = T {\n x raw\n") != []
    assert errors("n = T") == []
    assert len(tree("# a\nn = T").comments) == 1


def test_an_empty_file_is_a_program_without_nodes() -> None:
    for text in ("", "\n", "# words", " \t\r\n"):
        assert tree(text).items == []


def test_scalars_in_a_tree_are_no_subclasses_of_what_they_stand_for() -> None:
    written = value('"x"')
    assert isinstance(written, Scalar) and type(written.value) is str
