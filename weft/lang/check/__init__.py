"""What can be wrong with a program whose text is right: one module a family of diagnostics.

Nothing here stops at the first finding, and nothing is reported about what an earlier stage has already refused.
"""

from __future__ import annotations

from weft.lang.check.coverage import check_coverage
from weft.lang.check.cycles import check_cycles
from weft.lang.check.entries import check_entries
from weft.lang.check.names import check_names, check_reserved_names
from weft.lang.check.rules import check_rules
from weft.lang.check.types import check_types
from weft.lang.check.values import check_gates, check_nulls, check_values
from weft.lang.check.warnings import check_level_sizes, check_required_skips
from weft.lang.check.wires import check_drivers, check_wires
from weft.lang.resolve.model import Model

FAMILIES = (
    check_names,
    check_wires,
    check_types,
    check_values,
    check_coverage,
    check_entries,
    check_drivers,
    check_gates,
    check_nulls,
    check_required_skips,
    check_level_sizes,
    check_rules,
    check_reserved_names,
    check_cycles,
)
"""In the order in which their findings are told."""


def check(model: Model) -> None:
    """Report everything that is wrong with the model."""
    for family in FAMILIES:
        family(model)
