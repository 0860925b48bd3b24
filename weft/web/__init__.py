"""The HTTP door: forms as pages, webhooks, and the JSON API. `server.py` runs it, `app.py` puts it together.

Use cases are in `weft.service`; here is what HTTP adds: who is let in, what fits, and how it is said.
"""
