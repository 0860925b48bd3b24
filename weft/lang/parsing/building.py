"""The tree, built while the parser reduces: one method for each rule of the grammar, named after it.

What one construct can tell by itself is checked here (an output with `?`, a container type's parameters, a marker that
leaves its line). What needs its surroundings, and what stands between which braces, is checked in `shape.py`.

Each method gets the rule's children: tokens, parts built before, and None for what `[...]` left out. A method that
returns None drops the part; its error is reported.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from weft.lang.diagnostics import Diagnostic, Source, Span, nearest
from weft.lang.parsing.literals import BadLiteral, read_heredoc, read_json_string, read_number, read_string
from weft.lang.parsing.mistake import Finding
from weft.lang.parsing.scopes import check_scopes
from weft.lang.parsing.shape import Shape
from weft.lang.parsing.tokens import Token
from weft.lang.syntax import (
    AssetMarker,
    Body,
    Comment,
    ContainerDecl,
    DictTypeExpr,
    Element,
    Field,
    File,
    FileMarker,
    GeneratorTypeExpr,
    IncludeDecl,
    Inline,
    InstanceFilled,
    ListTypeExpr,
    ListValue,
    Name,
    NamedTypeExpr,
    NodeDecl,
    ObjectValue,
    OneOf,
    PerInstance,
    PortDecl,
    RecordFieldExpr,
    RecordTypeExpr,
    Scalar,
    Signature,
    TypeDecl,
    TypeExpr,
    UnionTypeExpr,
    Wire,
    WireLine,
)

CONTAINER_TYPES: Final = {"List": "List[String]", "Dict": "Dict[String, Number]", "Generator": "Generator[String]"}
"""The types that take types, each with an example."""

_NOT_INLINE: Final = "a {} cannot be written in the place of a value: declare it by itself and wire its output"

Children = list[Any]


def _name(token: Token) -> Name:
    return Name(token.text, Span(token.start, token.end))


class Builder:
    """Reads one file at a time: `begin` starts it, `errors` and `shape` hold what was found."""

    def begin(self, source: Source, included: bool) -> None:
        self.source = source
        self.text = source.text
        self.included = included
        self.errors: list[Diagnostic] = []
        self.comments: list[Comment] = []
        self.lost: set[str] = set()
        """Names of entries that could not be read: that they are missing is no further error."""
        self.shape = Shape(source, self.errors, self.comments, self.lost)

    def finish(self, items: list[Any]) -> tuple[File, list[Diagnostic]]:
        """The file, once all its entries are read, and every error in it by place."""
        file = self.shape.file(items, self.included)
        check_scopes(file, self.errors, self.lost)
        self.errors.sort(key=lambda error: (error.line, error.column))
        return file, self.errors

    def error(self, span: Span, message: str, hint: str | None = None, slug: str = "parse") -> None:
        self.errors.append(Diagnostic.at(self.source, span, slug, message, hint=hint))

    def report(self, finding: Finding) -> None:
        self.error(*finding)

    # --- entries ------------------------------------------------------------------------------------------

    def file(self, children: Children) -> list[Any]:
        return self.shape.entries(children)

    def body(self, children: Children) -> Body:
        return Body(self.shape.entries(children[1:-1]), Span(children[0].start, children[-1].end))

    def node(self, children: Children) -> NodeDecl | None:
        name, _, type_, signature, body = children
        end = body.span.end if body else signature.span.end if signature else type_.end
        return self.shape.node(
            NodeDecl(_name(name), _name(type_), signature, body, Span(name.start, end)),
        )

    def group(self, children: Children) -> ContainerDecl | None:
        return self._container("group", *children)

    def loop(self, children: Children) -> ContainerDecl | None:
        return self._container("loop", *children)

    def anonymous(self, children: Children) -> ContainerDecl | None:
        return self._container("group", None, None, *children)

    def _container(
        self,
        kind: Literal["group", "loop"],
        name: Token | None,
        _: Token | None,
        keyword: Token,
        signature: Signature | None,
        body: Body | None,
    ) -> ContainerDecl | None:
        end = body.span.end if body else signature.span.end if signature else keyword.end
        span = Span((name or keyword).start, end)
        return self.shape.container(kind, _name(name) if name else None, signature, body, span)

    def include(self, children: Children) -> IncludeDecl:
        name, _, marker, path, closer = children
        self._on_one_line(marker, closer)
        self.shape.declared_name(name.text, Span(name.start, name.end))
        return IncludeDecl(
            _name(name), read_string(path.text), Span(path.start, path.end), Span(name.start, closer.end)
        )

    def type_decl(self, children: Children) -> TypeDecl:
        keyword, name, _, type_ = children
        return TypeDecl(_name(name), type_, Span(keyword.start, type_.span.end))

    def field(self, children: Children) -> Field:
        name, optional, _, value = children
        start = name.start
        return Field(Name(name.text, Span(start, name.end)), optional is not None, value, Span(start, value.span.end))

    def wire_line(self, children: Children) -> WireLine | None:
        path, _, value = children
        parts = self._path(path)
        if len(parts) > 2:
            target = f"{parts[0].text}.{parts[1].text}"
            self.error(
                Span(path.start, path.end),
                f"a value lands on a port, never inside one: write `{target} = …`",
                "keys are read on the right side only: `port: node.port.key`",
            )
            return None
        return WireLine(parts[0], parts[1], value, Span(path.start, value.span.end))

    def one_of(self, children: Children) -> OneOf:
        self._on_one_line(children[0], children[-1])
        return OneOf([_name(name) for name in children[1:-1:2]], Span(children[0].start, children[-1].end))

    def per_instance(self, children: Children) -> PerInstance:
        span = Span(children[0].start, children[0].end)
        self.error(
            span, "`@per_instance` is not supported: a program runs as one instance", slug="instances-unsupported"
        )
        return PerInstance(span)

    # --- signatures ---------------------------------------------------------------------------------------

    def ports(self, children: Children) -> tuple[list[PortDecl], list[OneOf], Span]:
        declared: list[PortDecl] = []
        one_of: list[OneOf] = []
        for child in children:
            if child.__class__ is PortDecl:
                declared.append(child)
            elif child.__class__ is OneOf:
                one_of.append(child)
        return declared, one_of, Span(children[0].start, children[-1].end)

    def signature(self, children: Children) -> Signature:
        (inputs, one_of, span), _, right = children
        if right is None:
            return Signature(inputs, [], one_of, span)
        return Signature(inputs, self._outputs(right), one_of, Span(span.start, right[2].end))

    def only_outputs(self, children: Children) -> Signature:
        arrow, right = children
        return Signature([], self._outputs(right), [], Span(arrow.start, right[2].end))

    def _outputs(self, ports: tuple[list[PortDecl], list[OneOf], Span]) -> list[PortDecl]:
        declared, one_of, _ = ports
        for each in one_of:
            self.error(each.span, "`@require_one_of` names inputs: it stands among the inputs or in the braces")
        for port in declared:
            if port.optional:
                port.optional = False
                self.error(
                    port.name.span.to(Span(port.name.span.end, port.name.span.end + 1)),
                    f"the output `{port.name.text}` has a '?', but an output is never optional: leave it out",
                    "an output that may stay silent is simply not emitted",
                )
        return declared

    def port(self, children: Children) -> PortDecl:
        name, optional, colon, type_ = children
        end = type_.span.end if colon else optional.end if optional else name.end
        return PortDecl(_name(name), optional is not None, type_, Span(name.start, end))

    # --- types --------------------------------------------------------------------------------------------

    def named_type(self, children: Children) -> NamedTypeExpr:
        (token,) = children
        span = Span(token.start, token.end)
        if token.text in CONTAINER_TYPES:
            example = CONTAINER_TYPES[token.text]
            self.error(span, f"`{token.text}` says of what in square brackets, as in `{example}`")
            return NamedTypeExpr("MustOverride", span)
        return NamedTypeExpr(token.text, span)

    def container_type(self, children: Children) -> TypeExpr:
        name = children[0]
        types = children[2:-1:2]
        span = Span(name.start, children[-1].end)
        match name.text, types:
            case "List", [item]:
                return ListTypeExpr(item, span)
            case "Generator", [item]:
                return GeneratorTypeExpr(item, span)
            case "Dict", [key, value]:
                return DictTypeExpr(key, value, span)
        if example := CONTAINER_TYPES.get(name.text):
            wanted = "two types" if name.text == "Dict" else "one type"
            self.error(span, f"`{name.text}` takes {wanted}, as in `{example}`, and here are {len(types)}")
        else:
            near = nearest(name.text, CONTAINER_TYPES)
            self.error(
                Span(name.start, name.end),
                f"`{name.text}` takes no types in square brackets: only List, Dict and Generator do",
                f"did you mean `{near}`?" if near else None,
            )
        return NamedTypeExpr("MustOverride", span)

    def grouped_type(self, children: Children) -> TypeExpr:
        inner: TypeExpr = children[1]
        return inner

    def union(self, children: Children) -> UnionTypeExpr:
        members: list[TypeExpr] = children[::2]
        return UnionTypeExpr(members, members[0].span.to(members[-1].span))

    def record(self, children: Children) -> RecordTypeExpr:
        fields: list[RecordFieldExpr] = children[1:-1:2]
        first: dict[str, Span] = {}
        for each in fields:
            before = first.setdefault(each.name.text, each.name.span)
            if before is not each.name.span:
                self.error(
                    each.name.span, f"the record has a field `{each.name.text}` already{self.shape.where(before)}"
                )
        return RecordTypeExpr(fields, Span(children[0].start, children[-1].end))

    def record_field(self, children: Children) -> RecordFieldExpr:
        name, optional, _, type_ = children
        return RecordFieldExpr(_name(name), optional is not None, type_)

    # --- values -------------------------------------------------------------------------------------------

    def string(self, children: Children) -> Scalar:
        (token,) = children
        return Scalar(read_string(token.text), "string", Span(token.start, token.end))

    def heredoc(self, children: Children) -> Scalar:
        (token,) = children
        return Scalar(read_heredoc(token.text), "heredoc", Span(token.start, token.end))

    def number(self, children: Children) -> Scalar:
        (token,) = children
        span = Span(token.start, token.end)
        try:
            return Scalar(read_number(token.text), "number", span)
        except BadLiteral as bad:
            self.error(span, bad.message, bad.hint)
            return Scalar(0, "number", span)

    json_number = number

    def json_string(self, children: Children) -> Scalar:
        (token,) = children
        return self._json_string(token)

    def _json_string(self, token: Token) -> Scalar:
        span = Span(token.start, token.end)
        try:
            return Scalar(read_json_string(token.text), "string", span)
        except BadLiteral as bad:
            self.error(Span(token.start + bad.at, token.end), bad.message, bad.hint)
            return Scalar(token.text[1:-1], "string", span)

    def true(self, children: Children) -> Scalar:
        return Scalar(True, "boolean", Span(children[0].start, children[0].end))

    def false(self, children: Children) -> Scalar:
        return Scalar(False, "boolean", Span(children[0].start, children[0].end))

    def null(self, children: Children) -> Scalar:
        return Scalar(None, "null", Span(children[0].start, children[0].end))

    def list_value(self, children: Children) -> ListValue:
        items = [child for child in children[1:-1:2] if child is not None]
        return ListValue(items, Span(children[0].start, children[-1].end))

    def object_value(self, children: Children) -> ObjectValue:
        entries: list[tuple[Scalar, Element]] = [child for child in children[1:-1:2] if child is not None]
        first: dict[Any, Span] = {}
        for key, _ in entries:
            before = first.setdefault(key.value, key.span)
            if before is not key.span:
                self.error(key.span, f'the object has a key "{key.value}" already{self.shape.where(before)}')
        return ObjectValue(entries, Span(children[0].start, children[-1].end))

    def pair(self, children: Children) -> tuple[Scalar, Element]:
        key, _, value = children
        return self._json_string(key), value

    def file_marker(self, children: Children) -> FileMarker:
        return FileMarker(*self._marker(children))

    def asset_marker(self, children: Children) -> AssetMarker:
        return AssetMarker(*self._marker(children))

    def _marker(self, children: Children) -> tuple[str, TypeExpr | None, Span]:
        opener, path, closer = children[0], children[1], children[-1]
        types = children[3:-1:2]
        span = Span(opener.start, closer.end)
        self._on_one_line(opener, closer)
        if len(types) > 1:
            self.error(
                types[1].span,
                f"`{opener.text[:-1]}` takes a path and one type",
                "a type of several is a union: `A | B`",
            )
        return read_string(path.text), types[0] if types else None, span

    def instance_filled(self, children: Children) -> InstanceFilled:
        span = Span(children[0].start, children[-1].end)
        self.error(span, "`@instance_filled` is not supported: write the value here", slug="instances-unsupported")
        return InstanceFilled(span)

    def wire(self, children: Children) -> Wire:
        (token,) = children
        parts = self._path(token)
        return Wire(parts[0], parts[1], parts[2:], Span(token.start, token.end))

    def inline_head(self, children: Children) -> Children:
        return children

    def inline_head_without_signature(self, children: Children) -> Children:
        return [children[0], None, children[1]]

    def inline(self, children: Children) -> Inline:
        (type_, signature, body), _, port = children
        span = Span(type_.start, port.end)
        if type_.type != "ID":
            self.error(Span(type_.start, type_.end), _NOT_INLINE.format(type_.text.lower()))
        else:
            self.shape.node_type(_name(type_))
            self.shape.node_body(body, None)
        return Inline(_name(type_), signature, body, _name(port), span)

    # --- helpers ------------------------------------------------------------------------------------------

    def _path(self, token: Token) -> list[Name]:
        at = token.start
        names = []
        for part in token.text.split("."):
            text = part.strip(" \t")
            start = at + part.index(text)
            names.append(Name(text, Span(start, start + len(text))))
            at += len(part) + 1
        return names

    def _on_one_line(self, opener: Token, closer: Token) -> None:
        if self.text.find("\n", opener.start, closer.end) >= 0:
            self.error(
                Span(opener.start, opener.end),
                f"`{opener.text[:-1]}` is written on one line, and its ')' stands on a later one",
            )
