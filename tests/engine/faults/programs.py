"""The programs that faults strike, with something of everything: a chain, a join, a shut gate, saved and bare effects,
a timer, two forms, a race of a form and a timer, retries, a run below, tags and a stop."""

from __future__ import annotations

CHILD = "child.weft"


def newer(server: str) -> str:
    return f"""
claim = TagRun {{ tags: ["chat"] }}
stop = StopTagged {{ _should_flow: claim.done  tags: ["chat"] }}
first = Visits {{ _should_flow: stop.done  server: "{server}"  value: 1 }}
saved = SavesVisits {{ server: "{server}"  value: first.value }}
left = Step {{ value: saved.one }}
right = Visits {{ server: "{server}"  value: saved.two }}
join = Adds {{ a: left.value  b: right.value }}
gated = Visits {{ _should_flow: join.shut  server: "{server}" }}
nap = Naps {{ value: join.sum  seconds: 0.03 }}
asks = AsksTwice {{ server: "{server}"  value: nap.value }}
race = FormOrTimer {{ _should_flow: first.value  seconds: 0.05 }}
again = VisitsAgain {{ server: "{server}"  value: first.value }}
below = StartsChild {{ program: "{CHILD}"  _should_flow: again.value }}
last = Visits {{ _should_flow: below.status  server: "{server}" }}
"""


def child(server: str) -> str:
    return f"""
begin = Visits {{ server: "{server}"  value: 1 }}
nap = Naps {{ value: begin.value  seconds: 0.03 }}
end = Visits {{ server: "{server}"  value: nap.value }}
"""


ELDER = """
hold = FormOrTimer { seconds: 3000 }
"""
"""Waits until the newer one stops it."""
