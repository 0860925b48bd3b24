"""Nodes that wait for each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from weft.lang.resolve.model import Link, Model, Node, Report

SHOWN = 12
"""How many nodes of a cycle are named."""

After = dict[str, list[Link]]
"""The wires out of each node."""


def check_cycles(model: Model) -> None:
    """Report a shortest cycle of every knot of nodes, as a path with lines."""
    after: After = {id_: [] for id_ in model.nodes}
    for link in model.links:
        # Only wires with both ends: what an undefined name seems to close is no cycle.
        if link.source is not None and link.output is not None and link.input is not None:
            after[link.source.id].append(link)
    for knot in _knots(_stuck(after), after):
        start = min((model.nodes[id_] for id_ in knot), key=lambda node: node.position)
        _tell(model.report, start, _shortest(start.id, knot, after))


def _target(link: Link) -> str:
    assert link.target is not None
    return link.target.id


def _stuck(after: After) -> list[str]:
    """The nodes that are in a cycle or behind one: what is left when all that can go first has gone."""
    waiting = dict.fromkeys(after, 0)
    for links in after.values():
        for link in links:
            waiting[_target(link)] += 1
    ready = [id_ for id_, count in waiting.items() if not count]
    while ready:
        for link in after[ready.pop()]:
            waiting[_target(link)] -= 1
            if not waiting[_target(link)]:
                ready.append(_target(link))
    return [id_ for id_, count in waiting.items() if count]


def _knots(stuck: list[str], after: After) -> Iterator[set[str]]:
    """The sets of nodes that all reach each other (Tarjan's algorithm, without recursion)."""
    inside = set(stuck)
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    for root in stuck:
        if root in index:
            continue
        work = [(root, iter(after[root]))]
        index[root] = low[root] = len(index)
        path.append(root)
        on_path.add(root)
        while work:
            here, links = work[-1]
            for link in links:
                there = _target(link)
                if there not in inside:
                    continue
                if there not in index:
                    index[there] = low[there] = len(index)
                    path.append(there)
                    on_path.add(there)
                    work.append((there, iter(after[there])))
                    break
                if there in on_path:
                    low[here] = min(low[here], index[there])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[here])
                if low[here] == index[here]:
                    knot = {here}
                    while (member := path.pop()) != here:
                        knot.add(member)
                    on_path -= knot
                    if len(knot) > 1 or any(_target(link) == here for link in after[here]):
                        yield knot


def _shortest(start: str, knot: set[str], after: After) -> list[Link]:
    """The wires of a shortest way from a node back to itself, within its knot."""
    came_by: dict[str, Link] = {}
    queue = deque([start])
    while start not in came_by:
        for link in after[queue.popleft()]:
            if _target(link) in knot and _target(link) not in came_by:
                came_by[_target(link)] = link
                queue.append(_target(link))
    way = [came_by[start]]
    while way[-1].source is not None and way[-1].source.id != start:
        way.append(came_by[way[-1].source.id])
    return way[::-1]


def _tell(report: Report, start: Node, cycle: list[Link]) -> None:
    def named(node: Node | None) -> str:
        assert node is not None
        return f"`{node.id}` (line {report.line(node.span)})"

    steps = [named(link.source) for link in cycle]
    if len(steps) > SHOWN:
        steps[SHOWN - 1 :] = [f"… {len(steps) - SHOWN + 1} more …"]
    report.error(
        cycle[-1].span,
        "graph-cycle",
        f"these nodes wait for each other: {' → '.join(steps)} → `{start.id}`"
        if len(cycle) > 1
        else f"{steps[0]} waits for itself",
        hint="take one of these wires out; what repeats belongs in a loop",
    )
