"""An error of a provider names its kind: a wrong set-up, with the setting to mend, or a refusal by policy."""

from __future__ import annotations

import pytest

from codetaste.errors import Cause, ModelSetupError
from codetaste.llm.wire.codecs import CLIENTS
from codetaste.llm.wire.protocols import PROTOCOLS, ProtocolName


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("status", "message", "setting"),
    [
        (400, "temperature: Extra inputs are not permitted", "options"),
        (422, "unknown parameter: safety_identifier", "options"),
        (400, "Your credit balance is too low to access the API.", "api_key_env"),
        (403, "Your team has used all available credits.", "api_key_env"),
        (400, "API key not valid. Please pass a valid API key.", "api_key_env"),
        (400, "Incorrect API key provided: ab***yz.", "api_key_env"),
        (401, "invalid x-api-key", "api_key_env"),
        (402, "Insufficient Balance", "api_key_env"),
        (429, "Insufficient balance or no resource package. Please recharge.", "api_key_env"),
        (400, "Access denied, please make sure your account is in good standing.", "api_key_env"),
        (403, "This key has no permission.", "api_key_env"),
        (403, "Blocked by the workspace ip_access_policy: not on the list.", "api_key_env"),
        (400, "acme/large is not a valid model ID", "model"),
        (400, "Model Not Exist", "model"),
        (404, "model: some-model", "model"),
        (308, "moved", "base_url"),
    ],
)
def test_wrong_setup_names_its_setting(
    protocol: ProtocolName, status: int, message: str, setting: str
) -> None:
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    error = CLIENTS[protocol].error_from(status, body, {})
    assert isinstance(error, ModelSetupError)
    assert (error.cause, error.setting, error.unbilled) == (Cause.SETUP, setting, True)
    error.model_id = "m"
    assert str(error).startswith(f"models[m].{setting}: HTTP {status}: ")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (400, "", "Output blocked by content filtering policy"),
        (400, "content_filter", "The response was filtered due to the content management policy."),
        (400, "invalid_prompt", "Invalid prompt: it potentially violates our usage policy."),
        (400, "cyber_policy", "We do not answer this: cyber_policy: no."),
        (403, "", "some-model requires moderation. Your input was flagged for violence."),
        (400, "data_inspection_failed", "Input data may contain inappropriate content."),
    ],
)
def test_refusal_by_policy_is_no_fault_of_the_setup(
    protocol: ProtocolName, status: int, code: str, message: str
) -> None:
    body = {"error": {"type": "invalid_request_error", "code": code, "message": message}}
    assert CLIENTS[protocol].error_from(status, body, {}).cause is Cause.REFUSED
