"""`ValueBag`: the values on a firing's inputs, read with a type.

Values are handed out as copies where they can be changed, since another node may hold the same value. Not
here: the check on arrival (`ports.py`).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar, overload

from weft.errors import InputError
from weft.lang.diagnostics import nearest
from weft.lang.graph import MISSING, Domain, InputPort
from weft.lang.values import misfit, outside

V = TypeVar("V")
_List = builtins.list
_Reader = Callable[[Any], tuple[Any, str | None]]


class ValueBag:
    """Values by name, each read with a type.

    A value of another type is always an error that names the input, what was expected and what came; no
    default hides it. A bool is no number. A name without a value is "absent"; null is a value.
    """

    __slots__ = ("_node", "_path", "_ports", "_values")

    def __init__(self, values: Mapping[str, Any], node: str, ports: Sequence[InputPort] = (), path: str = "") -> None:
        self._values = values
        self._node = node
        self._ports = ports
        self._path = path

    @overload
    def get(self, name: str) -> Any: ...
    @overload
    def get(self, name: str, type: type[V]) -> V: ...
    @overload
    def get(self, name: str, type: Any) -> Any: ...
    def get(self, name: str, type: Any = None) -> Any:
        """The value, of the Python type `type` or, without one, as the port declares it.

        `float` turns a whole number into a float and `int` takes 3.0 as 3. Raises InputError: absent, null
        where the type has no null, or another type.
        """
        value = self._values.get(name, MISSING)
        if value is MISSING:
            raise self._absent(name)
        return self._read(name, value, type)

    def get_or(self, name: str, default: Any, type: Any = None) -> Any:
        """As `get`, with `default` where the input is absent. Null is not absent."""
        value = self._values.get(name, MISSING)
        return default if value is MISSING else self._read(name, value, type)

    @overload
    def opt(self, name: str) -> Any: ...
    @overload
    def opt(self, name: str, type: type[V]) -> V | None: ...
    @overload
    def opt(self, name: str, type: Any) -> Any: ...
    def opt(self, name: str, type: Any = None) -> Any:
        """As `get`, with None where the input is absent or null."""
        value = self._values.get(name)
        return None if value is None else self._read(name, value, type)

    @overload
    def list(self, name: str) -> _List[Any]: ...
    @overload
    def list(self, name: str, type: type[V]) -> _List[V]: ...
    @overload
    def list(self, name: str, type: Any) -> _List[Any]: ...
    def list(self, name: str, type: Any = None) -> _List[Any]:
        """A list of `type`; a single value is a list of one."""
        value = self._values.get(name, MISSING)
        if value is MISSING:
            raise self._absent(name)
        if not isinstance(value, builtins.list):
            return [self._read(name, value, type)]
        return [self._read(f"{name}[{at}]", item, type) for at, item in enumerate(value)]

    def raw(self, name: str) -> Any:
        """The value as it came, unchecked. Raises InputError where it is absent."""
        value = self._values.get(name, MISSING)
        if value is MISSING:
            raise self._absent(name)
        return _own(value)

    def nested(self, name: str) -> ValueBag:
        """The bag of an object's keys. Raises InputError where the value is no object."""
        value = self.get(name, dict)
        return ValueBag(value, self._node, path=self._named(name))

    def declared(self) -> dict[str, Any]:
        """The values of the inputs that the node type declares, in source order."""
        return {port.name: _own(self._values[port.name]) for port in self._present(created=False)}

    def created(self) -> dict[str, Any]:
        """The values of the inputs that the program created, in source order."""
        return {port.name: _own(self._values[port.name]) for port in self._present(created=True)}

    def absent(self) -> _List[str]:
        """The names of the inputs that have no value, in source order: their wire closed, or nothing feeds them."""
        return [port.name for port in self._ports if port.name not in self._values]

    def in_order(self) -> _List[tuple[str, Any]]:
        """Every name with its value, in source order."""
        return [(name, _own(self._values[name])) for name in self]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        if not self._ports:
            return iter(self._values)
        return (port.name for port in self._ports if port.name in self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"ValueBag({dict(self._values)!r})"

    def _present(self, *, created: bool) -> Iterator[InputPort]:
        return (port for port in self._ports if port.created is created and port.name in self._values)

    def _read(self, name: str, value: Any, type_: Any) -> Any:
        if type_ is None:
            return _own(value)
        exact = value.__class__
        if exact is type_ and exact in _SCALARS:
            return value
        result, reason = _reader(type_)(value)
        if reason is not None:
            raise InputError(f"{self._where(name)} is {reason}")
        return result

    def _named(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def _where(self, name: str) -> str:
        return f"the input `{self._named(name)}` of `{self._node}`"

    def _absent(self, name: str) -> InputError:
        known = [port.name for port in self._ports] or builtins.list(self._values)
        if name in known:
            return InputError(
                f"{self._where(name)} has no value",
                hint="read an input that may be absent with `opt` or `get_or`",
            )
        if self._path:
            return InputError(f"`{self._path}` of `{self._node}` has no key `{name}`{_meant(name, known)}")
        return InputError(f"`{self._node}` has no input `{name}`{_meant(name, known)}")


def _meant(name: str, known: Sequence[str]) -> str:
    likely = nearest(name, known)
    if likely is not None:
        return f"; did you mean `{likely}`?"
    return f"; there are {', '.join(f'`{each}`' for each in known)}" if known else "; there are none"


# --- reading as a Python type -----------------------------------------------------------------------------

_SCALARS = frozenset({str, int, float, bool})


def _own(value: Any) -> Any:
    """The value itself where it cannot be changed, else a copy."""
    exact = value.__class__
    if exact is dict:
        return {key: _own(each) for key, each in value.items()}
    if exact is list:
        return [_own(each) for each in value]
    return value


def _reader(type_: Any) -> _Reader:
    try:
        return _cached_reader(type_)
    except TypeError:
        return _make_reader(type_)


def _make_reader(type_: Any) -> _Reader:
    from weft.nodes.reading.pytypes import Unsayable, say

    try:
        wanted, options = say(type_)
    except Unsayable as problem:
        raise InputError(f"a value cannot be read as that: {problem}", hint=problem.hint) from None
    domain = None if options is None else Domain(options=options)
    whole = type_ is int

    def read(value: Any) -> tuple[Any, str | None]:
        reason = misfit(value, wanted)
        if reason is None and domain is not None:
            reason = outside(value, domain)
        if reason is not None:
            return None, reason
        if whole and isinstance(value, float):
            return (int(value), None) if value.is_integer() else (None, f"{value}, not a whole number")
        if type_ is float:
            return float(value), None
        return _own(value), None

    return read


_cached_reader = lru_cache(maxsize=512)(_make_reader)
