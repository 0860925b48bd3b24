"""From an author's Python to a `NodeSpec`: what a class or function declares, and what is said of it.

What authors write with is in `weft.nodes`.
"""
