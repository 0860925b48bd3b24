"""What may stand between which braces, and which names and reserved keys are allowed.

The grammar reads one permissive list of entries; this module, asked while the tree is built, tells bodies of nodes,
groups and loops apart. What needs a whole scope (duplicates, values for what is not declared) is in `scopes.py`.
"""

from __future__ import annotations

import bisect
import re
from typing import Any, Final, Literal

from weft.lang.diagnostics import Diagnostic, Source, Span, nearest
from weft.lang.graph import GATES
from weft.lang.parsing.tokens import Token
from weft.lang.syntax import (
    Body,
    Comment,
    ContainerDecl,
    Field,
    File,
    IncludeDecl,
    Inline,
    Item,
    ListValue,
    Name,
    NodeDecl,
    OneOf,
    PerInstance,
    Scalar,
    Signature,
    TypeDecl,
    Value,
    Wire,
    WireLine,
)

RESERVED_KEYS: Final = ("_label", "_tags", *GATES)
RESERVED_NAMES: Final = frozenset({"self", "Group", "Loop", "LoopIn", "LoopOut", "Passthrough"})

_TAG: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_IN_NODES: Final = (Field, WireLine, OneOf, PerInstance)
DECLARATIONS: Final = (NodeDecl, ContainerDecl, IncludeDecl, TypeDecl)


class Shape:
    """`unclosed` is set when braces are closed by the end of the text: what is inside is then no sign of a mistake."""

    def __init__(self, source: Source, errors: list[Diagnostic], comments: list[Comment], lost: set[str]) -> None:
        self._source = source
        self._text = source.text
        self._errors = errors
        self._comments = comments
        self._lost = lost
        self.unclosed = False
        self.missing_braces = 0
        """How many closing braces are already said to be missing."""

    def _error(self, span: Span, message: str, hint: str | None = None, slug: str = "parse") -> None:
        self._errors.append(Diagnostic.at(self._source, span, slug, message, hint=hint))

    def where(self, span: Span) -> str:
        """The end of a sentence that points back at another place."""
        line, column = self._source.position(span.start)
        return f" (line {line}, column {column})"

    # --- entries ------------------------------------------------------------------------------------------

    def file(self, entries: list[Any], included: bool) -> File:
        """The entries of a whole file, less those that may only stand in braces."""
        items: list[Item] = []
        root: ContainerDecl | None = None
        for entry in entries:
            if isinstance(entry, ContainerDecl) and entry.id is None:
                if included and root is None:
                    root = entry
                elif included:
                    self._error(entry.span, "an included file holds one group, and here begins a second")
                else:
                    self._error(
                        entry.span,
                        "a group without a name is for files that others include: give it one, `name = Group(…) { … }`",
                    )
            elif isinstance(entry, Field):
                self._error(
                    entry.span,
                    f"`{entry.name.text}: …` stands in the braces of a node, and here are none",
                    "on its own line a value names its node: `node.port = …`",
                )
            elif isinstance(entry, OneOf):
                self._error(entry.span, "`@require_one_of` stands in the braces or among the inputs of a node")
            elif not isinstance(entry, PerInstance):
                items.append(entry)
                if included:
                    self._error(
                        entry.span,
                        "an included file holds one group without a name and nothing else: move this into its braces",
                    )
        if included and root is None:
            self._error(
                Span(0, 0), "an included file holds one group without a name, as in `Group(text: String) { … }`"
            )
        return File(self._source, [] if included else items, self._comments, root)

    def entries(self, children: list[Any]) -> list[Any]:
        """The entries without their commas; each declaration must end before the next entry begins."""
        kept: list[Any] = []
        previous: Any = None
        comma = False
        for child in children:
            if child is None:
                continue
            if child.__class__ is Token:
                comma = True
                continue
            if previous is not None and isinstance(previous, DECLARATIONS):
                self._separated(previous, child, comma)
            elif child.__class__ is IncludeDecl and previous is not None:
                self._separated(child, previous, comma)
            kept.append(child)
            previous, comma = child, False
        return kept

    def _separated(self, one: Any, other: Any, comma: bool) -> None:
        first, second = (one.span, other.span) if one.span.start < other.span.start else (other.span, one.span)
        if self._text.find("\n", first.end, second.start) >= 0:
            return
        if isinstance(one, IncludeDecl) or isinstance(other, IncludeDecl):
            self._error(second, "`@include` stands alone on its line: begin a new line here")
        elif not comma:
            self._error(second, "a declaration ends at its line end: begin a new line (or put a comma) here")

    # --- names --------------------------------------------------------------------------------------------

    def declared_name(self, name: str, span: Span) -> None:
        if name in RESERVED_NAMES:
            self._error(span, f"`{name}` is a reserved word and cannot be a name here: choose another")
        elif "__" in name:
            self._error(span, f"`{name}` holds two underscores in a row, which generated names use: write one of them")

    def node_type(self, name: Name) -> None:
        if name.text == "Passthrough":
            self._error(name.span, "`Passthrough` is made by the compiler for groups and cannot be written")

    # --- nodes --------------------------------------------------------------------------------------------

    def node(self, node: NodeDecl) -> NodeDecl | None:
        if not node.id.text:
            return None
        self.declared_name(node.id.text, node.id.span)
        if node.type.text:
            self.node_type(node.type)
            self.node_body(node.body, node.id.text)
        return node

    def node_body(self, body: Body | None, name: str | None) -> None:
        """Keeps what may stand in the braces of a node, and says what may not."""
        if body is None:
            return
        misplaced = False
        for entry in body.entries:
            if isinstance(entry, Field):
                if entry.name.text[0] == "_":
                    self._reserved_key(entry)
            elif not isinstance(entry, _IN_NODES):
                if not misplaced and not self.unclosed:
                    self.missing_braces += 1
                    self._misplaced_in_node(entry, name)
                misplaced = True
                self._lost.add(_called(entry))
        if misplaced:
            body.entries = [entry for entry in body.entries if isinstance(entry, _IN_NODES)]

    def _misplaced_in_node(self, entry: Any, name: str | None) -> None:
        owner = f"`{name}`" if name else "the node"
        self._error(
            entry.span,
            f"the braces of a node hold values, not declarations: `{_called(entry)}` belongs outside of {owner}",
            f"is the '}}' that closes {owner} missing?",
        )

    def _reserved_key(self, field: Field) -> None:
        key, value = field.name.text, field.value
        if key in GATES:
            return
        if key == "_label":
            if not isinstance(value, Scalar) or value.kind not in ("string", "heredoc"):
                self._error(value.span, '`_label` takes a text in quotes, as in `_label: "The greeting"`')
        elif key == "_tags":
            self._tags(value)
        else:
            self._error(field.name.span, *unknown_key(key))

    def _tags(self, value: Value) -> None:
        if not isinstance(value, ListValue):
            self._error(value.span, '`_tags` takes a list of texts, as in `_tags: ["support", "a-1"]`')
            return
        for item in value.items:
            if not isinstance(item, Scalar) or not isinstance(item.value, str):
                self._error(item.span, 'a tag is a text in quotes, as in `_tags: ["support"]`')
            elif not _TAG.fullmatch(item.value):
                self._error(
                    item.span,
                    f"\"{item.value}\" is no tag: it is 1 to 64 of the letters, digits, '_' and '-' of ASCII",
                )

    # --- groups and loops ---------------------------------------------------------------------------------

    def container(
        self,
        kind: Literal["group", "loop"],
        name: Name | None,
        signature: Signature | None,
        body: Body | None,
        span: Span,
    ) -> ContainerDecl:
        if name is not None and name.text:
            self.declared_name(name.text, name.span)
        fields: list[Field] = []
        items: list[Item] = []
        for entry in body.entries if body else ():
            if isinstance(entry, Field):
                if self._container_field(kind, name, entry):
                    fields.append(entry)
            elif isinstance(entry, OneOf):
                self._one_of_on_container(kind, entry)
            elif isinstance(entry, ContainerDecl) and entry.id is None:
                self._error(entry.span, "a group inside of another needs a name, as in `part = Group(…) { … }`")
            elif not isinstance(entry, PerInstance):
                items.append(entry)
        if signature is not None:
            for each in signature.one_of:
                self._one_of_on_container(kind, each)
        if kind == "loop":
            self._settings(fields)
        description = self._description(body.span) if body else None
        return ContainerDecl(kind, name, signature, description, fields, items, span)

    def _description(self, body: Span) -> str | None:
        """The comment that is the very first thing after the brace."""
        at = bisect.bisect_left(self._comments, body.start, key=lambda comment: comment.span.start)
        if at == len(self._comments):
            return None
        comment = self._comments[at]
        if comment.span.end > body.end or self._text[body.start + 1 : comment.span.start].strip():
            return None
        return comment.text.removeprefix("#").strip()

    def _one_of_on_container(self, kind: str, one_of: OneOf) -> None:
        self._error(one_of.span, f"`@require_one_of` is for nodes: a {kind} has no such rule")

    def _container_field(self, kind: Literal["group", "loop"], name: Name | None, field: Field) -> bool:
        key = field.name.text
        if key in GATES or (kind == "loop" and key not in ("_label", "_tags")):
            if field.optional:
                self._error(field.span, f"`{key}` takes no '?': write `{key}: …`")
            return True
        if key in ("_label", "_tags"):
            self._error(field.span, f"`{key}` is for nodes: a {kind} has none")
            return False
        target = f"{name.text}.{key}" if name else f"<name>.{key}"
        self._error(
            field.span,
            f"the braces of a group hold its nodes, and `{key}` is a value: feed the port from outside, `{target} = …`",
        )
        return False

    def _settings(self, fields: list[Field]) -> None:
        first: dict[str, Span] = {}
        for field in fields:
            key = field.name.text
            if key in GATES:
                continue
            before = first.setdefault(key, field.name.span)
            if before is not field.name.span:
                self._error(field.name.span, f"`{key}` is set twice: first here{self.where(before)}")
            value = field.value
            if isinstance(value, Wire | Inline):
                self._error(value.span, f"`{key}` is a setting of the loop: it takes a written value, no wire, no node")
            elif key in ("over", "carry") and not _is_list_of_texts(value):
                self._error(
                    value.span,
                    f'[loop-config-malformed] `{key}` takes a list of port names, as in `{key}: ["items"]`',
                )


def unknown_key(key: str) -> tuple[str, str | None]:
    """Message and hint for a key that begins with '_' and is none of the known ones."""
    near = nearest(key, RESERVED_KEYS)
    return (
        f"`{key}` is no key: of the names that begin with '_' there are only {_and(RESERVED_KEYS)}",
        f"did you mean `{near}`?" if near else None,
    )


def _is_list_of_texts(value: Value) -> bool:
    return isinstance(value, ListValue) and all(
        isinstance(item, Scalar) and isinstance(item.value, str) for item in value.items
    )


def _called(entry: Any) -> str:
    match entry:
        case TypeDecl(name=name):
            return name.text
        case ContainerDecl(id=None):
            return "Group"
        case _:
            return str(entry.id.text)


def _and(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names[:-1]) + f" and `{names[-1]}`"
