"""From the tree to nodes with ports and wires with ends, by what the node types say.

`collecting` walks the tree, `ports` gives nodes their ports, `linking` joins values and wires to them, `variables`
finds out types. What is wrong with the result is for `check/` to say; only what leaves no result (a header that does
not fit its type, a file that cannot be read, a construct that is not built yet) is reported here.
"""

from __future__ import annotations

from weft.lang.metadata import NodeTypes
from weft.lang.resolve.collecting import collect, declared_types
from weft.lang.resolve.given import Given, GivenRefused, check_given, fill
from weft.lang.resolve.linking import link
from weft.lang.resolve.literals import Files, Literals, cast_values
from weft.lang.resolve.model import Model, Report
from weft.lang.resolve.ports import Ports
from weft.lang.resolve.typenames import TypeNames
from weft.lang.resolve.variables import solve
from weft.lang.syntax import File

__all__ = ["Files", "Given", "GivenRefused", "Model", "resolve"]


def resolve(file: File, types: NodeTypes, files: Files, given: Given) -> Model:
    """The model of a file that parsed without errors, and in its report what could not be resolved. Raises GivenRefused
    for a given value that does not fit."""
    report = Report(file.source)
    names = TypeNames(report, declared_types(file))
    literals = Literals(report, names, files)
    model = Model(report, types)
    declarations = collect(model, file, names)
    link(model, declarations, Ports(report, names, literals), literals)
    fill(model, given)
    solve(model)
    cast_values(model)
    check_given(model, given)
    return model
