"""Figures, not pass or fail: `python -m tests.bench [SCENARIO…]`."""
