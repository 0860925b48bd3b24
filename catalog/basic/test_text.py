from catalog.basic.text import Text


async def test_passes_its_text_on_as_it_is(rig):
    for text in ("hello", "", "  two\nlines ", "# no comment", "naïve 🎈"):
        assert (await rig.run(Text, {"value": text})).outputs == {"value": text}


async def test_takes_text_alone(rig):
    outcome = await rig.run(Text, {"value": 3})
    assert "the input `value` of `text`" in outcome.failed.message
    assert outcome.closed == ["value"]
