"""What is a secret by its name, and what is left of data and messages that hold one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.schema import REMOVED, is_secret, redact, redact_text, redact_url


def words(text: str) -> list[str]:
    return text.split()


SECRETS = words("""
api_key apikey apiKey APIKey API_KEY OPENAI_API_KEY ACME_KEY OPENAI_API_KEY_2 X-Api-Key x-goog-api-key api-key key
api_keys api_key_value private_key PRIVATE_KEY_PEM secretAccessKey AWS_SECRET_ACCESS_KEY ssh_key signing_key
Ocp-Apim-Subscription-Key secret secrets client_secret API_SECRET token access_token accessToken refresh_token
HF_TOKEN GITHUB_TOKEN AWS_SESSION_TOKEN X-Amz-Security-Token X-Auth-Token bearer_token id_token oauth.token
AZURE_OPENAI_AD_TOKEN access_tokens password PASSWORD db_password PGPASSWORD passwd old_password db_pwd SMTP_PASS
passphrase credential credentials GOOGLE_APPLICATION_CREDENTIALS aws_creds auth basic_auth X-Auth auth_header
Authorization authorization Proxy-Authorization bearer Cookie Set-Cookie jwt authtoken
""")
PLAIN = words("""
max_tokens maxTokens max_completion_tokens num_tokens total_tokens reasoning_tokens tokens input_tokens prompt_tokens
token_limit token_count token_id token_ids token_type_ids tokenizer tokenizer_config tokenize stop_token stop_tokens
bos_token eos_token pad_token special_tokens cost_per_token next_page_token token_provider azure_ad_token_provider
token_url token_text token_str logit_bias logit_keys logit_key logprobs top_logprobs keys keyword keywords keyboard
monkey hotkey sort_key primary_key answer_key target_key public_key cache_key prompt_cache_key key_value idempotency_key
api_key_file api_key_env api_key_name key_id AWS_ACCESS_KEY_ID password_file password_length num_secrets has_password
use_auth require_auth secret_name secretary author authors authority authentic auth_type auth_url PWD OLDPWD
pass pass_at_k first_pass passed passage bypass compass cookie_policy bearing model temperature seed user username
""")


@pytest.mark.parametrize("name", SECRETS)
def test_a_credential_is_known_by_its_name(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", [*PLAIN, "", "_", "123", "名前"])
def test_counts_places_and_words_that_only_sound_alike_are_no_secrets(name: str) -> None:
    assert not is_secret(name)


@given(st.sampled_from([name for name in SECRETS if name != "key"]), st.sampled_from(["acme", "my", "ZED", "svc"]))
def test_a_prefix_and_the_case_change_nothing(name: str, prefix: str) -> None:
    assert is_secret(f"{prefix}_{name}")
    assert is_secret(f"{prefix}-{name}")
    assert is_secret(name.upper() if "_" in name or "-" in name else name)


json_data: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(SECRETS + PLAIN), inner),
    max_leaves=20,
)


@given(json_data)
def test_redacting_twice_is_redacting_once(data: Any) -> None:
    once = redact(data)
    assert redact(once) is once


@given(json_data, st.sampled_from(SECRETS))
def test_no_secret_survives_at_any_depth(data: Any, name: str) -> None:
    held = [{"deep": ({name: "value-of-it", "other": data},)}]
    assert "value-of-it" not in repr(redact(held))
    assert "value-of-it" in repr(held), "what was given is not changed"


@pytest.mark.parametrize(
    "data",
    [
        {"max_tokens": 10, "nested": [{"sort_key": "a"}], "pair": ("b", 1)},
        {"api_key": None, "use_auth": True, "password": "", "token": False, "credentials": {}, "secret": REMOVED},
        "a prompt that speaks of a password: hunter2, and of api_key=abc",
        b"bytes",
        3,
    ],
)
def test_what_holds_no_secret_is_returned_as_it_is(data: Any) -> None:
    assert redact(data) is data


def test_a_secret_is_taken_out_whatever_it_is() -> None:
    held = {"password": 1234, "credentials": {"user": "u", "id": "i"}, "auth": ("u", "p"), "api_keys": ["a"]}
    assert redact(held) == dict.fromkeys(held, REMOVED)


def test_only_what_changes_is_copied() -> None:
    same = {"a": [1]}
    made: Any = redact({"same": same, "token": "abc", "list": [same, {"token": "abc"}]})
    assert made == {"same": same, "token": REMOVED, "list": [same, {"token": REMOVED}]}
    assert made["same"] is same and made["list"][0] is same


def test_addresses_and_well_known_keys_in_data_lose_their_secrets() -> None:
    assert redact({"proxy": "http://u:p@proxy:8080", "note": "sk-proj-0123456789abcdef"}) == {
        "proxy": "http://proxy:8080",
        "note": REMOVED,
    }


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("https://user:pa@ss@example.org/v1", "https://example.org/v1"),
        ("https://ghp@github.com/a/b.git", "https://github.com/a/b.git"),
        ("https://h/v1?key=abc&alt=json", "https://h/v1?key=[removed]&alt=json"),
        ("https://h/c?sv=1&sig=abc%3D", "https://h/c?sv=1&sig=[removed]"),
        ("https://h/#access_token=abc", "https://h/#access_token=[removed]"),
        ("https://h/v1?page_token=abc&api-version=1", "https://h/v1?page_token=abc&api-version=1"),
        ("https://h/user@example.org", "https://h/user@example.org"),
        ("git@github.com:a/b.git", "git@github.com:a/b.git"),
    ],
)
def test_an_address_without_its_credentials(url: str, plain: str) -> None:
    assert redact_url(url) == plain


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Authorization: Bearer abc", "Authorization: [removed]"),
        (
            "sent {'Authorization': 'Bearer abc', 'X-Team': 'blue'}",
            "sent {'Authorization': '[removed]', 'X-Team': 'blue'}",
        ),
        ("bearer 0123456789abcdef was refused", "bearer [removed] was refused"),
        ("Basic dXNlcjpwYXNzd29yZA==", "Basic [removed]"),
        ('{"api_key": "pa\\"ss", "max_tokens": 12}', '{"api_key": "[removed]", "max_tokens": 12}'),
        ('\'{\\"api_key\\": \\"hunter\\"}\'', '\'{\\"api_key\\": \\"[removed]\\"}\''),
        ("error: api_key=abc, model=x", "error: api_key=[removed], model=x"),
        ("api_key='cut", "api_key='[removed]"),
        ("GET https://u:p@h/v1?key=abc&alt=json: 403", "GET https://h/v1?key=[removed]&alt=json: 403"),
        ("password=hunter, user=bob", "password=[removed], user=bob"),
        ("password: hunter2", "password: [removed]"),
        ("token=0123456789", "token=[removed]"),
        ("Set-Cookie: a=b; c=d\nnext", "Set-Cookie: [removed]\nnext"),
        ("Incorrect API key provided: sk-proj-0123456789abcdef.", "Incorrect API key provided: [removed]."),
    ],
)
def test_a_message_without_its_credentials(text: str, plain: str) -> None:
    assert redact_text(text) == plain
    assert redact_text(plain) == plain


@pytest.mark.parametrize(
    "text",
    [
        "Unexpected token: foo",
        "token='<eos>' at 3",
        "wrong password: try another",
        "KeyError: 'api_key'",
        "client = Client(api_key=os.environ['X'], token=get())",
        "def f(api_key: str | None = None):",
        "export OPENAI_API_KEY=...",
        "max_tokens=1024, stop_token='x1234567'",
        "Basic authentication failed",
        "api_key=None",
        "429 rate_limit_exceeded: slow down (request req-12)",
    ],
)
def test_a_message_without_a_credential_is_left_alone(text: str) -> None:
    assert redact_text(text) == text


def test_secrets_of_the_environment_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "correct-horse")
    monkeypatch.setenv("ACME_TOKEN", "correct-horse-battery")
    monkeypatch.setenv("ACME_PASSWORD", "short")
    monkeypatch.setenv("ACME_MODEL", "acme-large")
    text = "correct-horse-battery, correct-horse, short, acme-large"
    expected = "[ACME_TOKEN], [ACME_API_KEY], short, acme-large"
    assert redact_text(text) == redact_text(text, forms=False) == expected


def test_a_text_for_a_model_loses_only_what_is_known_to_be_secret() -> None:
    assert redact_text("login with password=hunter2", forms=False) == "login with password=hunter2"


@given(st.text(), st.text(alphabet="abcdefghij0123456789", min_size=8))
def test_a_value_after_the_name_of_a_secret_never_survives(around: str, value: str) -> None:
    # given: anything before it that is not itself a part of a name
    text = f"{around} api_key={value} end"
    assert f"api_key={value}" not in redact_text(text)
