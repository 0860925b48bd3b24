"""One firing of a node from the inside: its context, its ports, what it recorded and what it waits for.

Who drives it (the engine, the rig of `weft.testing`) is elsewhere, and supplies where effects go.
"""
