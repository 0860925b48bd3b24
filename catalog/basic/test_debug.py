import pytest

from catalog.basic.debug import Debug


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("plain text", "plain text"),
        ("", ""),
        (3, "3"),
        (2.5, "2.5"),
        (True, "true"),
        (None, "null"),
        ([1, "a", None], '[1,"a",null]'),
        ({"name": "Zoë", "tags": []}, '{"name":"Zoë","tags":[]}'),
    ],
)
async def test_shows_text_as_it_is_and_all_else_as_compact_json(rig, data, shown):
    outcome = await rig.run(Debug, {"data": data})
    assert outcome.logs == [("debug", shown)]
    assert outcome.failed is None


async def test_shows_once_where_a_crash_makes_it_run_again(rig):
    rig.crash_after(1)
    outcome = await rig.run(Debug, {"data": "once"})
    assert outcome.attempts == 2
    assert outcome.logs == [("debug", "once")]
