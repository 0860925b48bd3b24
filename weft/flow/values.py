"""Values as they travel: independent copies, and sameness as JSON sees it."""

from __future__ import annotations

from typing import Any


def fresh(value: Any) -> Any:
    """The same value in lists and dicts of its own, so that whoever gets it may change it."""
    if not isinstance(value, (list, dict)):
        return value
    whole = value.copy()
    pending = [whole]
    while pending:
        box = pending.pop()
        for place, item in box.items() if isinstance(box, dict) else enumerate(box):
            if isinstance(item, (list, dict)):
                box[place] = own = item.copy()
                pending.append(own)
    return whole


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal. Unlike with `==`, true is not 1; 1 is 1.0 all the same."""
    pending = [(one, other)]
    while pending:
        a, b = pending.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys():
                return False
            pending.extend((a[key], b[key]) for key in a)
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            pending.extend(zip(a, b, strict=True))
        elif isinstance(a, bool) is not isinstance(b, bool) or a != b:
            return False
    return True
