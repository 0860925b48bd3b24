import pytest

from catalog.basic.format import Format
from weft import CreatedInputs
from weft.testing import CLOSED


async def text_of(rig, template: str, **values: object) -> str:
    outcome = await rig.run(Format, {"template": template, **values})
    assert outcome.failed is None, outcome.failed
    return outcome.outputs["text"]


async def failure_of(rig, template: str, **values: object) -> str:
    outcome = await rig.run(Format, {"template": template, **values})
    assert outcome.failed is not None, outcome.outputs
    assert outcome.closed == ["text"]
    return outcome.failed.message


async def test_texts_go_in_as_they_are_and_all_else_as_json(rig):
    assert await text_of(rig, "Dear {{name}},", name='Zoë "Z"') == 'Dear Zoë "Z",'
    filled = await text_of(rig, "{{a}} {{b}} {{c}} {{d}} {{e}}", a=1, b=True, c=None, d=[1, "x"], e={"k": "ü"})
    assert filled == '1 true null [1,"x"] {"k":"ü"}'


async def test_a_placeholder_may_come_twice_and_have_blanks_inside(rig):
    assert await text_of(rig, "{{a}}{{ a }}", a="x") == "xx"


async def test_no_placeholder_at_all_is_a_plain_text(rig):
    assert await text_of(rig, "plain { } }} text") == "plain { } }} text"


async def test_four_braces_are_two(rig):
    assert await text_of(rig, "{{{{x}}}}") == "{{x}}"
    assert await text_of(rig, "{{{{{{x}}}}}}", x="1") == "{{1}}"


async def test_single_braces_around_a_placeholder_are_text(rig):
    assert await text_of(rig, '{"a": {"b": {{x}}}}', x=1) == '{"a": {"b": 1}}'
    assert await text_of(rig, "{{{x}}}", x="1") == "{1}"


async def test_what_is_filled_in_is_not_read_as_a_template(rig):
    assert await text_of(rig, "{{a}} {{b}}", a="{{b}}", b="\\1") == "{{b}} \\1"


async def test_a_placeholder_without_an_input_fails(rig):
    said = await failure_of(rig, "Dear {{nane}}", name="x")
    assert said == "the template has the placeholder `{{nane}}`, and there is no input of that name; there are `name`"


async def test_an_input_without_a_placeholder_fails(rig):
    assert await failure_of(rig, "Dear {{a}}", a="x", b="y", c="z") == (
        "the template has no placeholder for the input `b`, `c`"
    )


@pytest.mark.parametrize("template", ["one\n{{name", "one\n{{ name }"])
async def test_a_placeholder_that_is_never_closed_fails_with_its_line(rig, template):
    assert "line 2 of the template is never closed" in await failure_of(rig, template)


async def test_the_template_is_no_placeholder(rig):
    assert "no input of that name" in await failure_of(rig, "{{template}}")


class WithOptionalInputs(Format):
    """As `name?: …` in a program makes it, which the rig does not have."""

    created_inputs = CreatedInputs(required=False)


async def test_an_optional_input_that_closed_leaves_its_placeholder_empty(rig):
    outcome = await rig.run(WithOptionalInputs, {"template": "Dear {{title}}{{name}}", "title": CLOSED, "name": "Zoë"})
    assert outcome.outputs == {"text": "Dear Zoë"}


async def test_a_required_input_that_closed_is_skipped(rig):
    with pytest.raises(ValueError, match="skipped"):
        await rig.run(Format, {"template": "{{a}}", "a": CLOSED})
