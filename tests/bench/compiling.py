"""From text to a checked program: nodes of four lines each, tables cached."""

from __future__ import annotations

import time

from tests.bench.scene import Scene

SIZES = (100, 1_000, 20_000)


def text(nodes: int) -> str:
    lines = ["n0 = ExecPython(x: Number) -> (y: Number) {", "  x: 1", '  code: "return {}"', "}"]
    for at in range(1, nodes):
        lines += [
            f"n{at} = ExecPython(x: Number) -> (y: Number) {{",
            f"  x: n{at - 1}.y",
            '  code: "return {}"',
            "}",
        ]
    return "\n".join(lines)


async def compile_programs(scene: Scene) -> dict[str, float]:
    scene.program(text(10))
    figures = {}
    for size in SIZES:
        program = text(size)
        started = time.perf_counter()
        scene.program(program)
        figures[f"compile_{size}_ms"] = (time.perf_counter() - started) * 1e3
    figures["growth_1000_to_20000"] = figures["compile_20000_ms"] / figures["compile_1000_ms"]
    return figures
