"""What JSON values are in the language: their types, whether they fit one, how they are cast.

Values are the plain Python ones that JSON has: None, bool, int, float, str, list, dict with string keys. A
bool is never a number; int and float are both Number. Paths in messages look like `messages[2].role`, items
from 0. Not here: which port holds which value, the types (`types.py`), what can be stored (`storable.py`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from weft.lang.graph import Domain
from weft.lang.storable import LARGEST_INTEGER, SMALLEST_INTEGER, at_key
from weft.lang.storable import unstorable as unstorable
from weft.lang.types import (
    BOOLEAN,
    EMPTY,
    MAX_NESTING,
    NULL,
    NUMBER,
    STRING,
    DictOf,
    JsonDict,
    ListOf,
    MustOverride,
    Needs,
    Primitive,
    Type,
    Union,
    Variable,
    assignable,
    decide,
    parse_type,
    union,
)

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


class CastError(ValueError):
    """The value cannot become one of the wanted type; the message says which part of it, and why."""


def infer(value: Any) -> Type:
    """The type of a value. Raises ValueError for what is no JSON value, and for nesting beyond the limit."""
    return _infer(value, 0)


def _infer(value: Any, depth: int) -> Type:
    for test, type_ in _SCALARS:
        if test(value):
            return type_
    if not isinstance(value, list | dict):
        raise ValueError(f"{a_value(value)} is no JSON value")
    if depth >= MAX_NESTING:
        raise ValueError(f"the value nests deeper than {MAX_NESTING} levels")
    members: dict[Type, None] = {}
    for each in value if isinstance(value, list) else value.values():
        members[_infer(each, depth + 1)] = None
    common = union(*members) if members else EMPTY
    return ListOf(common) if isinstance(value, list) else DictOf(STRING, common)


def same(a: Any, b: Any) -> bool:
    """Equality of JSON values: `true` is not 1, while 1 and 1.0 are one number."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


# --- does it fit? -----------------------------------------------------------------------------------------


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _is_null(value: Any) -> bool:
    return value is None


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _always(value: Any) -> bool:
    return True


def _never(value: Any) -> bool:
    return False


_PRIMITIVE_TESTS: Final[dict[Type, Callable[[Any], bool]]] = {
    STRING: _is_string,
    NUMBER: _is_number,
    BOOLEAN: _is_boolean,
    NULL: _is_null,
    EMPTY: _never,
}


_PYTHON_TYPES: Final[dict[Type, frozenset[type]]] = {
    STRING: frozenset({str}),
    NUMBER: frozenset({int, float}),
    BOOLEAN: frozenset({bool}),
}

_SCALARS: Final = tuple((test, type_) for type_, test in _PRIMITIVE_TESTS.items())


@lru_cache(maxsize=4096)
def _test(type_: Type) -> Callable[[Any], bool]:
    """A predicate for one type, built once. A variable or MustOverride takes any value."""
    match type_:
        case Primitive():
            return _PRIMITIVE_TESTS[type_]
        case ListOf(item_type):
            item = _test(item_type)
            if item is _always:
                return lambda value: isinstance(value, list)
            # Most lists of scalars hold exactly these Python types: that is seen without a call for each item.
            exact = _PYTHON_TYPES.get(item_type, frozenset())
            return lambda value: (
                isinstance(value, list) and (exact.issuperset(map(type, value)) or all(map(item, value)))
            )
        case JsonDict():
            return _is_object
        case DictOf(key_type, value_type):
            keys_fit, inner = assignable(STRING, key_type), _test(value_type)
            if not keys_fit:
                return _never
            return lambda value: isinstance(value, dict) and all(map(inner, value.values()))
        case Union(members):
            tests = []
            for member in members:
                tests.append(_test(member))
            return _any_of(tests)
        case _:
            return _always


def _any_of(tests: list[Callable[[Any], bool]]) -> Callable[[Any], bool]:
    def one_fits(value: Any) -> bool:
        for test in tests:  # noqa: SIM110 - a generator would cost a nested type one more frame a level
            if test(value):
                return True
        return False

    return one_fits


def misfit(value: Any, type_: Type) -> str | None:
    """None where the value fits the type; else why not, as in `[2].name is a Number, not a String`."""
    if _test(type_)(value):
        return None
    path, culprit, wanted = _culprit(value, type_, "")
    verdict = f"{a_value(culprit)}, not {a_type(wanted)}"
    return f"{path} is {verdict}" if path else verdict


def _culprit(value: Any, type_: Type, path: str) -> tuple[str, Any, Type]:
    """The first part of a value that does not fit: its path, itself, and the type it should have."""
    match type_:
        case ListOf(item) if isinstance(value, list):
            test = _test(item)
            at = next(i for i, each in enumerate(value) if not test(each))
            return _culprit(value[at], item, f"{path}[{at}]")
        case DictOf(key, inner) if isinstance(value, dict) and assignable(STRING, key):
            test = _test(inner)
            name = next(name for name, each in value.items() if not test(each))
            return _culprit(value[name], inner, at_key(path, name))
    return path, value, type_


@lru_cache(maxsize=4096)
def fitter(type_text: str) -> Callable[[Any], str | None]:
    """`misfit` for the type that this text spells, prepared once for many values."""
    type_ = parse_type(type_text)
    test = _test(type_)

    def check(value: Any) -> str | None:
        return None if test(value) else misfit(value, type_)

    return check


def a_value(value: Any) -> str:
    """What a value is, for a message: `a String`, `null`, `a Python set`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a Boolean"
    if isinstance(value, int | float):
        return "a Number"
    for python_type, name in ((str, "a String"), (list, "a List"), (dict, "a Dict")):
        if isinstance(value, python_type):
            return name
    return f"a Python {type(value).__name__}"


def a_type(type_: Type) -> str:
    """A type with its article, for a message."""
    if type_ == NULL:
        return "null"
    if type_ == EMPTY:
        return "the item of an empty list"
    return f"a {type_}"


# --- casting ----------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def cast_allowed(source: Type, target: Type) -> bool:
    """Whether the Cast node may stand between these two types."""
    return decide(source, target, _cast_allowed)


def _cast_allowed(source: Type, target: Type) -> bool | Needs:
    """Takes all that is assignable, and more: containers part by part, a union where one pairing will do."""
    if target == STRING or source in (target, EMPTY):
        return True
    match source, target:
        case (Variable() | MustOverride(), _) | (_, Variable() | MustOverride()):
            return True
        case Union(members), _:
            return any, [(member, target) for member in members]
        case _, Union(members):
            return any, [(source, member) for member in members]
        case ListOf(a), ListOf(b):
            return any, [(a, b)]
        case DictOf(key, a), DictOf(wanted_key, b):
            return any, [(a, b)] if assignable(key, wanted_key) else []
        case (JsonDict(), DictOf()) | (DictOf(), JsonDict()):
            return assignable(source, target)
        case Primitive(name="String"), JsonDict() | DictOf() | ListOf():
            return True
        case Primitive(name="String"), _:
            return target in (NUMBER, BOOLEAN)
        case Primitive(), Primitive():
            return {source, target} == {NUMBER, BOOLEAN}
    return False


def cast_literal(value: Any, type_: Type) -> Any:
    """A written value as one of the type: itself where it fits, else cast where only one reading is possible.

    Raises CastError. Null never casts, and nothing becomes text but numbers and booleans.
    """
    return _Caster(lenient_text=False).cast(value, type_, "")


def convert(value: Any, type_: Type) -> Any:
    """What the Cast node does to a value at run time. Raises CastError, naming the path inside the value."""
    return _Caster(lenient_text=True).cast(value, type_, "")


class _Caster:
    """Written values and the Cast node differ in one thing: whether anything at all may become text."""

    def __init__(self, *, lenient_text: bool) -> None:
        self.lenient_text = lenient_text

    def cast(self, value: Any, type_: Type, path: str) -> Any:
        if _test(type_)(value):
            return value
        match type_:
            case Union(members):
                return self._one_of(value, members, type_, path)
            case Primitive(name="String"):
                if isinstance(value, bool | int | float) or self.lenient_text:
                    return _json_text(value)
            case Primitive(name="Number"):
                if isinstance(value, bool):
                    return int(value)
                if isinstance(value, str):
                    return _number(value, path)
            case Primitive(name="Boolean"):
                return self._boolean(value, path)
            case ListOf(item):
                items = []
                for at, each in enumerate(_from_text(value, list, type_, path)):
                    items.append(self.cast(each, item, f"{path}[{at}]"))
                return items
            case DictOf(key, inner) if assignable(STRING, key):
                entries = {}
                for name, each in _from_text(value, dict, type_, path).items():
                    entries[name] = self.cast(each, inner, at_key(path, name))
                return entries
            case JsonDict():
                return _from_text(value, dict, type_, path)
        raise CastError(_cannot(value, type_, path))

    def _one_of(self, value: Any, members: Sequence[Type], whole: Type, path: str) -> Any:
        results: list[Any] = []
        for member in members:
            try:
                results.append(self.cast(value, member, path))
            except CastError:
                continue
        if not results:
            raise CastError(_cannot(value, whole, path))
        if not all(same(results[0], other) for other in results[1:]):
            readings = ", ".join(_json_text(result) for result in results)
            raise CastError(
                f"{_show(value)}{_where(path)} could be read in several ways as {a_type(whole)}: {readings}"
            )
        return results[0]

    def _boolean(self, value: Any, path: str) -> bool:
        if isinstance(value, str):
            word = value.strip().lower()
            if word in ("true", "1"):
                return True
            if word in ("false", "0"):
                return False
        elif isinstance(value, int | float) and value in (0, 1):
            return value == 1
        raise CastError(_cannot(value, BOOLEAN, path))


def _number(text: str, path: str) -> int | float:
    trimmed = text.strip()
    found = _NUMBER.fullmatch(trimmed)
    if found is None:
        raise CastError(_cannot(text, NUMBER, path))
    whole = found[1] is None and found[2] is None
    # A float first: it is never slow, however many digits there are.
    value: int | float = float(trimmed)
    if whole and abs(value) < 2.0**64:
        value = int(trimmed)
        if SMALLEST_INTEGER <= value <= LARGEST_INTEGER:
            return value
    if whole or not math.isfinite(value):
        raise CastError(f"{_show(text)}{_where(path)} is too large for a Number")
    return value


def _from_text(value: Any, kind: type, type_: Type, path: str) -> Any:
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError as error:
            raise CastError(f"the text{_where(path)} is not {a_type(type_)}: {error}") from None
    if not isinstance(value, kind):
        raise CastError(_cannot(value, type_, path))
    return value


def parse_json(text: str) -> Any:
    """JSON as the language takes it: no NaN or Infinity, no key twice, no endless nesting. ValueError."""

    def refuse(name: str) -> None:
        raise ValueError(f"`{name}` is no JSON value")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            names = [key for key, _ in pairs]
            double = next(key for key in names if names.count(key) > 1)
            raise ValueError(f"the key `{double}` stands there twice")
        return entries

    def integer(digits: str) -> int:
        if len(digits) > 20:
            raise ValueError(f"`{digits[:20]}…` is an integer beyond signed 64 bits")
        return int(digits)

    try:
        value = json.loads(text, parse_int=integer, parse_constant=refuse, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg.lower()} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise ValueError(f"it nests deeper than {MAX_NESTING} levels") from None
    reason = unstorable(value)
    if reason is not None:
        raise ValueError(reason)
    return value


def _json_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _show(value: Any, limit: int = 40) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return f"`{text}`" if len(text) <= limit else a_value(value)


def _where(path: str) -> str:
    return f" at `{path}`" if path else ""


def _cannot(value: Any, type_: Type, path: str) -> str:
    what = _show(value) if isinstance(value, str | int | float) else a_value(value)
    return f"{what}{_where(path)} cannot become {a_type(type_)}"


# --- what a value must be beyond its type -----------------------------------------------------------------


def outside(value: Any, domain: Domain) -> str | None:
    """None where a value of the right type lies in the domain; else what is wrong with it.

    Bounds and whole numbers concern numbers; options concern the value, or each item of a list; null passes.
    """
    if value is None:
        return None
    if _is_number(value):
        if domain.minimum is not None and not value >= domain.minimum:
            return f"{value} is below {_plain(domain.minimum)}, the least that is allowed"
        if domain.maximum is not None and not value <= domain.maximum:
            return f"{value} is above {_plain(domain.maximum)}, the most that is allowed"
        if domain.whole and not float(value).is_integer():
            return f"{value} is not a whole number"
    if domain.options is not None:
        for chosen in value if isinstance(value, list) else (value,):
            if not any(same(chosen, option) for option in domain.options):
                return f"{_show(chosen)} is none of {', '.join(_show(option) for option in domain.options)}"
    return None


def _plain(bound: float) -> str:
    return str(int(bound)) if float(bound).is_integer() else str(bound)
