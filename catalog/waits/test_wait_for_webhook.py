import pytest

from catalog.waits.wait_for_webhook import WaitForWebhook
from weft import WebhookRequest


async def test_the_request_goes_out_in_three_parts(rig):
    rig.signal(WebhookRequest({"paid": True}, {"content-type": "application/json"}, {"id": "7"}))
    outcome = await rig.run(WaitForWebhook)
    assert outcome.outputs == {
        "body": {"paid": True},
        "headers": {"content-type": "application/json"},
        "query": {"id": "7"},
    }
    assert outcome.closed == ["timedOut"]


@pytest.mark.parametrize("body", [None, "", [], {}, False])
async def test_an_empty_body_is_a_value(rig, body):
    rig.signal(body)
    outcome = await rig.run(WaitForWebhook, {"timeoutSecs": 5})
    assert outcome.outputs == {"body": body, "headers": {}, "query": {}}


async def test_a_time_out_says_so_and_closes_the_rest(rig):
    outcome = await rig.run(WaitForWebhook, {"timeoutSecs": 5})
    assert outcome.outputs == {"timedOut": True}
    assert outcome.closed == ["body", "headers", "query"]


async def test_a_time_out_that_nothing_hangs_on_is_a_failure(rig):
    outcome = await rig.run(WaitForWebhook, {"timeoutSecs": 5}, wired=["body"])
    assert outcome.failed.message == "`waitForWebhook`: the webhook did not come to an end within 5 seconds"
