"""The JSON API: `routes.py` is the table of all there is, `openapi.py` describes it from there."""
