"""What needs a whole scope: names declared twice, keys written twice, values for what is not declared, type names.

A scope is a file's top level or the inside of a group or loop. Nothing here knows a node type or a graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weft.lang.diagnostics import Diagnostic, Source, Span, nearest
from weft.lang.graph import GATES
from weft.lang.parsing.shape import unknown_key
from weft.lang.syntax import (
    AssetMarker,
    Body,
    ContainerDecl,
    DictTypeExpr,
    Field,
    File,
    FileMarker,
    GeneratorTypeExpr,
    IncludeDecl,
    Inline,
    Item,
    ListTypeExpr,
    ListValue,
    Name,
    NamedTypeExpr,
    NodeDecl,
    ObjectValue,
    RecordTypeExpr,
    Scalar,
    TypeDecl,
    TypeExpr,
    UnionTypeExpr,
    WireLine,
)
from weft.lang.types import is_variable_name

RESERVED_TYPE_NAMES: Final = frozenset(
    {
        *("String", "Number", "Boolean", "Null", "Empty", "Image", "Video", "Audio", "Blob", "Media", "File"),
        *("List", "Dict", "JsonDict", "Generator", "Bus", "Access", "MustOverride", "T_Auto"),
    }
)

_LITERALS: Final = (Scalar, ListValue, ObjectValue, FileMarker, AssetMarker)

_MOST_COMPARISONS: Final = 100_000
"""Looking for near names among thousands takes long, and many errors with hints help no more than a few."""

Declaration = NodeDecl | ContainerDecl | IncludeDecl


def check_scopes(file: File, errors: list[Diagnostic], lost: set[str]) -> None:
    """Adds what is wrong in any scope of the file; `lost` are names whose declaration could not be read."""
    _Scope(file.source, errors, lost, None, frozenset()).check(file.items)
    if file.root:
        _Scope(file.source, errors, lost, file.root, frozenset()).check(file.root.items)


class _Scope:
    def __init__(
        self,
        source: Source,
        errors: list[Diagnostic],
        lost: set[str],
        container: ContainerDecl | None,
        outer_types: frozenset[str],
    ) -> None:
        self._source = source
        self._errors = errors
        self._lost = lost
        self._container = container
        self._types = outer_types
        self._declared: dict[str, Declaration] = {}
        self._generated: set[str] = set()
        self._written: dict[tuple[str, str], Name] = {}
        self._lines: list[WireLine] = []

    def _error(self, span: Span, message: str, hint: str | None = None, slug: str = "parse") -> None:
        self._errors.append(Diagnostic.at(self._source, span, slug, message, hint=hint))

    def _where(self, span: Span) -> str:
        return "line {}, column {}".format(*self._source.position(span.start))

    def check(self, items: list[Item]) -> None:
        self._check_types([item for item in items if isinstance(item, TypeDecl)])
        containers: list[ContainerDecl] = []
        for item in items:
            if isinstance(item, NodeDecl):
                if self._declare(item.id, item) and item.body is not None:
                    self._read_body(item.id.text, item.body)
            elif isinstance(item, WireLine):
                self._lines.append(item)
            elif isinstance(item, ContainerDecl):
                assert item.id is not None
                if self._declare(item.id, item):
                    for field in item.fields:
                        if field.name.text in GATES:
                            self._read_field(item.id.text, field)
                containers.append(item)
            elif isinstance(item, IncludeDecl):
                self._declare(item.id, item)
        for line in self._lines:
            self._read_line(line)
        for container in containers:
            _Scope(self._source, self._errors, self._lost, container, self._types).check(container.items)

    # --- names and keys -----------------------------------------------------------------------------------

    def _declare(self, name: Name, item: Declaration) -> bool:
        first = self._declared.setdefault(name.text, item)
        if first is item:
            return True
        assert first.id is not None
        self._error(
            name.span, f"`{name.text}` is declared already ({self._where(first.id.span)}): a scope has each name once"
        )
        return False

    def _read_body(self, host: str, body: Body) -> None:
        for entry in body.entries:
            if isinstance(entry, Field):
                self._read_field(host, entry)
            elif isinstance(entry, WireLine):
                self._lines.append(entry)

    def _read_field(self, host: str, field: Field) -> None:
        value = field.value
        if isinstance(value, Inline):
            self._read_inline(host, field.name, value)
        elif isinstance(value, _LITERALS):
            self._write(host, field.name)

    def _read_inline(self, host: str, key: Name, inline: Inline) -> None:
        name = f"{host}__{key.text}"
        if name in self._generated:
            self._error(inline.span, f"`{host}.{key.text}` has a node written in its place already: it takes one")
            return
        self._generated.add(name)
        if inline.body:
            self._read_body(name, inline.body)

    def _write(self, node: str, key: Name) -> None:
        first = self._written.setdefault((node, key.text), key)
        if first is not key:
            first, second = sorted((first, key), key=lambda each: each.span)
            self._error(
                second.span, f"`{node}.{key.text}` has a value already ({self._where(first.span)}): keep one of them"
            )

    # --- lines of their own -------------------------------------------------------------------------------

    def _read_line(self, line: WireLine) -> None:
        node, port = line.node.text, line.port
        if port.text in ("_label", "_tags"):
            self._error(
                line.span, f"`{port.text}` is written in the braces of its node: `{node} = … {{ {port.text}: … }}`"
            )
            return
        if port.text[0] == "_" and port.text not in GATES:
            self._error(port.span, *unknown_key(port.text))
            return
        if isinstance(line.value, Inline):
            self._read_inline(node, port, line.value)
        elif isinstance(line.value, _LITERALS) and self._takes_value(line):
            self._write(node, Name(port.text, line.span))

    def _takes_value(self, line: WireLine) -> bool:
        node, port = line.node.text, line.port.text
        if node == "self":
            self._value_for_self(line)
            return False
        target = self._declared.get(node)
        if target is None:
            if node not in self._generated and node not in self._lost:
                worth_it = len(self._errors) * len(self._declared) < _MOST_COMPARISONS
                near = nearest(node, self._declared) if worth_it else None
                self._error(
                    line.node.span,
                    f"nothing here is called `{node}`, so the value has nowhere to go",
                    f"did you mean `{near}`?" if near else "declare it in the same braces, or on the same level",
                )
            return False
        if isinstance(target, ContainerDecl) and node not in self._lost and port not in GATES:
            signature = target.signature
            ports = [each.name.text for each in (*signature.inputs, *signature.outputs)] if signature else []
            if port not in ports:
                near = nearest(port, ports)
                known = "it has " + ", ".join(f"`{name}`" for name in ports) if ports else "it has no ports"
                self._error(
                    line.port.span,
                    f"the {target.kind} `{node}` has no port `{port}`",
                    f"did you mean `{near}`?" if near else known,
                )
                return False
        return True

    def _value_for_self(self, line: WireLine) -> None:
        if self._container is None:
            self._error(line.node.span, "`self` is the group or loop around a line, and around this one is none")
            return
        self._error(
            line.span,
            f"`self.{line.port.text}` is an output of the {self._container.kind} and takes a wire, not a written value",
            "write the value in a node, such as Text, and wire that",
            "value-on-output",
        )

    # --- types --------------------------------------------------------------------------------------------

    def _check_types(self, declared: list[TypeDecl]) -> None:
        if not declared:
            return
        here: dict[str, TypeDecl] = {}
        for each in declared:
            name = each.name.text
            first = here.get(name)
            if first is not None:
                self._error(each.name.span, f"the type `{name}` is declared already ({self._where(first.name.span)})")
            elif name in self._types:
                self._error(each.name.span, f"the type `{name}` is declared already, further out: choose another name")
            elif name in RESERVED_TYPE_NAMES or is_variable_name(name):
                what = "a type variable" if is_variable_name(name) else "a type of the language"
                self._error(each.name.span, f"`{name}` is {what}: choose another name")
            elif not name[0].isupper():
                self._error(each.name.span, f"a type's name begins with an upper-case letter, and `{name}` does not")
            here.setdefault(name, each)
            self._check_type_body(each)
        self._check_cycles(here)
        self._types |= here.keys()

    def _check_type_body(self, declared: TypeDecl) -> None:
        type_ = declared.type
        if isinstance(type_, UnionTypeExpr):
            for one, other in zip(type_.members, type_.members[1:], strict=False):
                if self._source.text.find("\n", one.span.end, other.span.start) >= 0:
                    self._error(other.span, "a type ends at its line end: write the whole union on one line")
                    break
        for named in _names(type_):
            if is_variable_name(named.name) or named.name == "MustOverride":
                self._error(
                    named.span, f"`{declared.name.text}` stands for one type, so `{named.name}` has no place in it"
                )

    def _check_cycles(self, here: dict[str, TypeDecl]) -> None:
        uses = {name: [each.name for each in _names(decl.type) if each.name in here] for name, decl in here.items()}
        done: set[str] = set()
        for name in here:
            path: list[str] = []
            pending: list[Iterator[str]] = [iter([name])]
            while pending:
                following = next(pending[-1], None)
                if following is None:
                    pending.pop()
                    if path:
                        done.add(path.pop())
                elif following in path:
                    cycle = [*path[path.index(following) :], following]
                    self._error(
                        here[following].name.span,
                        "a type cannot be made of itself: " + " → ".join(f"`{each}`" for each in cycle),
                    )
                elif following not in done:
                    path.append(following)
                    pending.append(iter(uses[following]))


def _names(type_: TypeExpr) -> Iterator[NamedTypeExpr]:
    """Every bare name in a type, in no particular order."""
    rest: list[TypeExpr] = [type_]
    while rest:
        match rest.pop():
            case NamedTypeExpr() as named:
                yield named
            case ListTypeExpr(item=item) | GeneratorTypeExpr(item=item):
                rest.append(item)
            case DictTypeExpr(key=key, value=value):
                rest += (key, value)
            case RecordTypeExpr(fields=fields):
                rest += (field.type for field in fields)
            case UnionTypeExpr(members=members):
                rest += members
