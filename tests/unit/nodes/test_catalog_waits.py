"""The catalog's waiting nodes as a program's author meets them: ports and rules at compile time."""

from __future__ import annotations

import pytest

from weft.lang.compile import Compiled, compile_source
from weft.lang.diagnostics import Source
from weft.nodes.registry import Registry


class NoFiles:
    def read(self, path: str) -> str:
        raise FileNotFoundError(path)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.load()


def compiled(registry: Registry, text: str) -> Compiled:
    return compile_source(Source("test.weft", text), registry, NoFiles())


def said(registry: Registry, text: str) -> str:
    result = compiled(registry, text)
    assert not result.ok
    return "\n".join(each.render() for each in result.diagnostics)


def test_ports_come_from_the_fields(registry: Registry) -> None:
    result = compiled(
        registry,
        """
draft = Text { value: "Hello" }
ask = HumanQuery {
  title: "Send it?"
  timeoutSecs: 60
  draft: draft.value
  who: names.value
  fields: [
    { "kind": "display", "key": "draft" },
    { "kind": "approve_reject", "key": "ok" },
    { "kind": "multi_select_input", "key": "who", "label": "To whom?" },
    { "kind": "select", "key": "tone", "options": ["kind", "short"] }
  ]
}
names = List -> (value: List[String]) { a: "Ann", b: "Bob" }
yes = Debug { data: ask.ok_approved }
no = Debug { data: ask.ok_rejected }
to = Debug { data: ask.who }
late = Debug { data: ask.timedOut }
""",
    )
    assert result.program is not None, "\n".join(each.render() for each in result.diagnostics)
    ask = next(each for each in result.program.nodes if each.id == "ask")
    assert {port.name: port.type for port in ask.outputs if not port.name.startswith("_")} == {
        "timedOut": "Boolean",
        "ok_approved": "Boolean",
        "ok_rejected": "Boolean",
        "who": "List[String]",
        "tone": "String",
    }


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ("HumanQuery { fields: [] }", "`fields` is empty"),
        ('HumanQuery { fields: [{ "kind": "text_input", "key": "a" }], timeoutSecs: -1 }', "timeoutSecs"),
        ('HumanQuery { fields: [{ "kind": "text", "key": "a" }] }', "there is no kind `text`"),
        ('HumanQuery { fields: [{ "kind": "display_image", "key": "a" }] }', "there is no kind `display_image`"),
        ('HumanQuery { fields: [{ "kind": "select", "key": "a" }] }', "needs the key `options`"),
        ('HumanQuery { fields: [{ "kind": "select", "key": "a", "options": [] }] }', "it is empty"),
        ("Wait { seconds: 0 }", "`seconds` is 0"),
        ("Wait { seconds: -1 }", "seconds"),
        ("Wait { }", "seconds"),
        ('WaitForWebhook { timeoutSecs: "soon" }', "timeoutSecs"),
        ("WaitUntil { }", "until"),
    ],
)
def test_rules_are_told_before_anything_runs(registry: Registry, node: str, words: str) -> None:
    assert words in said(registry, f"a = {node}\n")


def test_the_program_of_a_start_run_is_written(registry: Registry) -> None:
    text = 'name = Text { value: "a.weft" }\nrun = StartRun { program: name.value }\n'
    assert "program" in said(registry, text)


@pytest.mark.parametrize("wait", ["Wait { seconds: 5 }", 'WaitUntil { until: "2030-01-31T09:00:00Z" }'])
def test_a_wait_needs_no_value(registry: Registry, wait: str) -> None:
    assert compiled(registry, f"a = {wait}\nb = Debug {{ data: a.wokeAt }}\n").ok


def test_what_fills_a_field_need_not_be_required(registry: Registry) -> None:
    fields = '[{ "kind": "editable_text_input", "key": "draft" }]'
    text = f'a = Text {{ value: "x" }}\nask = HumanQuery {{ fields: {fields}  draft: a.value }}'
    assert not compiled(registry, text).diagnostics
    assert compiled(registry, text.replace("draft: a.value", "title: a.value")).diagnostics
