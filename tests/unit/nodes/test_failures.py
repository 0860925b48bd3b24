"""What is kept of an exception."""

from __future__ import annotations

import json
from typing import Any

import pytest

from weft import NodeError, RunFailed, node_error
from weft.errors import DivergedAfterCrash
from weft.nodes.firing.failures import LONGEST_MESSAGE, failure_of, own_traceback, storable_text
from weft.nodes.firing.ports import encoded
from weft.nodes.registry import Registry
from weft.testing import Rig


def caught(call: Any) -> BaseException:
    try:
        call()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def raises(error: BaseException) -> Any:
    def call() -> None:
        raise error

    return call


def test_message_type_and_traceback() -> None:
    failure = failure_of(caught(raises(ValueError("no good"))))
    assert failure["message"] == "no good"
    assert failure["type"] == "ValueError"
    assert failure["traceback"].splitlines()[-1] == "ValueError: no good"
    assert "raise error" in failure["traceback"]


def test_an_exception_without_a_text_is_told_by_its_type() -> None:
    assert failure_of(caught(raises(TimeoutError())))["message"] == "TimeoutError"


def test_frames_of_libraries_and_of_weft_are_left_out() -> None:
    failure = failure_of(caught(lambda: json.loads("{")))
    assert "test_failures.py" in failure["traceback"]
    assert "json/decoder.py" not in failure["traceback"]
    failure = failure_of(caught(lambda: encoded({1})))
    assert "ports.py" not in failure["traceback"]


def test_an_exception_of_nobodys_own_frames_has_no_traceback() -> None:
    assert own_traceback(ValueError("never raised")) is None
    assert "traceback" not in failure_of(ValueError("never raised"))


async def test_what_a_catalog_node_detects_comes_with_its_hint_and_without_the_catalogs_lines(rig: Rig) -> None:
    node = Registry.load().node_class("Format")
    assert node is not None
    error = (await rig.run(node, {"template": "{{name}}"})).failed
    assert error is not None
    failure = failure_of(error.error)
    assert failure["hint"] == "two braces that are meant as text are written as four"
    assert "traceback" not in failure


def test_a_key_error_says_what_it_is() -> None:
    assert failure_of(caught(lambda: {}["sender"]))["message"] == "KeyError: 'sender'"


def test_causes_are_kept() -> None:
    def call() -> None:
        with node_error("reading the response"):
            json.loads("{")

    error = caught(call)
    assert isinstance(error, NodeError)
    assert error.message.startswith("reading the response: Expecting property name")
    text = failure_of(error)["traceback"]
    assert "JSONDecodeError" in text
    assert "direct cause" in text
    assert "json/decoder.py" not in text


def test_groups_are_trimmed_too() -> None:
    text = failure_of(caught(raises(ExceptionGroup("two", [caught(lambda: json.loads("{")), ValueError("b")]))))
    assert "JSONDecodeError" in text["traceback"]
    assert "json/decoder.py" not in text["traceback"]


def test_node_error_leaves_a_divergence_alone() -> None:
    with pytest.raises(DivergedAfterCrash), node_error("emitting"):
        raise DivergedAfterCrash("other ports")


def test_a_failure_from_elsewhere_keeps_its_type_and_traceback() -> None:
    error = RunFailed("nobody there", type_name="ConnectError", traceback="Traceback: far away")
    assert failure_of(caught(raises(error))) == {
        "message": "nobody there",
        "type": "ConnectError",
        "traceback": "Traceback: far away",
    }


def test_texts_come_out_storable() -> None:
    failure = failure_of(caught(raises(ValueError("a\0b\ud800c" + "x" * 100_000))))
    encoded(failure)
    assert failure["message"].startswith("a\ufffdb\ufffdc")
    assert len(failure["message"]) < LONGEST_MESSAGE + 100
    assert "characters left out" in failure["message"]


def test_a_text_that_can_be_kept_is_kept() -> None:
    assert storable_text("é😀\n\u2028", 100) == "é😀\n\u2028"


def test_an_exception_whose_text_fails_has_its_type() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    assert failure_of(Broken())["message"] == "Broken"
