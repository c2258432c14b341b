"""Commands used wrongly: every error names the thing and what helps, and ends with the documented exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli.main import main

CONFIG = """\
version: 1
providers: {p: {type: openai_compatible, base_url: "http://127.0.0.1:9/v1"}}
models: {m: {targets: [{provider: p, model: x}]}}
"""


@pytest.fixture(autouse=True)
def folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(home)
    (home / "c.yaml").write_text(CONFIG)
    (home / "bad.yaml").write_text("a: [1\n")
    (home / "list.yaml").write_text("- a\n")
    (home / "mysql.yaml").write_text(f"storage: {{database_url: 'mysql://u:p4ssw0rd@h/d'}}\n{CONFIG}")
    (home / "body.json").write_text('{"temperature": 9}')
    return home


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("nonsense", 2, "No such command 'nonsense'"),
        ("serve -c gone.yaml", 3, "gone.yaml\n  cannot be read: No such file or directory. Correct --config or"),
        ("check -c .", 3, "cannot be read: Is a directory"),
        ("check -c bad.yaml", 3, "bad.yaml:2:1"),
        ("check -c list.yaml", 3, "a mapping (key: value) is expected"),
        ("check -c mysql.yaml", 3, "mysql.yaml:1:25  storage.database_url"),
        ("serve -c mysql.yaml", 3, "begins with 'mysql'; it must be sqlite+aiosqlite"),
        ("init -o .", 2, ". is a folder; name a file in it"),
        ("init -o gone/c.yaml", 1, "Make its folder first"),
        ("init -o c.yaml", 1, "c.yaml exists; --force overwrites it"),
        ("explain nothing -c c.yaml", 2, "`gateway models` shows those there are"),
        ("explain m -c c.yaml --params gone.json", 2, "gone.json cannot be read: No such file or directory"),
        ("explain m -c c.yaml --params bad.yaml", 3, "bad.yaml:2:1"),
        ("explain m -c c.yaml --params list.yaml", 2, "list.yaml: the members of a request are expected"),
        ("explain m -c c.yaml --params body.json", 1, "with body.json, a client would be told: 400"),
        ("models show nothing -c c.yaml", 2, "`gateway models list --all` shows what is known"),
        ("providers show nothing", 2, "'nothing' is not a provider type"),
        ("keys show nothing -c c.yaml", 1, "`gateway keys list` shows all"),
        ("keys create -c c.yaml --expires 9", 2, "'9' is not a duration. Did you mean '9s'?"),
        ("probe nothing -c c.yaml", 2, "there is no target 'nothing'. There are: p/x"),
        ("probe m -c c.yaml --only nothing --yes", 2, "no fact that can be asked for is called nothing"),
        ("simulate nothing", 2, "'nothing' is not a provider type"),
        ("simulate groq --override gone.yaml", 2, "gone.yaml cannot be read: No such file or directory"),
        ("simulate groq --override bad.yaml", 3, "bad.yaml:2:1"),
        ("simulate groq --override list.yaml", 3, "list.yaml: a mapping (key: value) is expected"),
        ("import litellm gone.yaml", 2, "gone.yaml cannot be read: No such file or directory"),
        ("import litellm bad.yaml", 3, "bad.yaml: line 2"),
        ("import litellm c.yaml", 3, "none of LiteLLM's sections is in it"),
        ("config diff -c c.yaml", 1, "Set auth.admin_key, or use --against"),
        ("config diff -c c.yaml --against gone.yaml", 3, "gone.yaml\n  cannot be read"),
        ("db current -c c.yaml", 1, "`gateway db upgrade` or `gateway serve` makes it"),
        ("local pull nothing", 1, "no model is called 'nothing'; those that can be fetched"),
        ("local rm nothing", 1, "no model is called 'nothing'"),
        ("catalog sync --litellm gone.json", 1, "gone.json cannot be read: No such file or directory"),
        ("catalog sync --litellm c.yaml", 1, "c.yaml: this is no JSON"),
    ],
)
def test_a_mistake_is_told_with_what_helps(capsys: pytest.CaptureFixture[str], line: str, code: int, said: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(line.split())

    printed = capsys.readouterr()
    assert ended.value.code == code, printed.err
    assert said in printed.err
    assert printed.out == ""
    assert "p4ssw0rd" not in printed.err


def test_an_address_without_a_scheme_is_none_of_a_gateway(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_ADMIN_KEY", "admin-key-0123456789")

    with pytest.raises(SystemExit) as ended:
        main(["config", "diff", "-c", "c.yaml", "--url", "localhost"])

    assert ended.value.code == 2
    assert "'localhost' is no address of a gateway. It begins with http:// or https://." in capsys.readouterr().err


def test_a_key_that_was_brought_is_not_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for number, more in enumerate(([], ["--json"])):
        brought = tmp_path / "key"
        brought.write_text(f"key-0123456789abcdef{number}\n")
        with brought.open() as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            with pytest.raises(SystemExit) as ended:
                main(["keys", "create", "-c", "c.yaml", "--secret-stdin", *more])

        printed = capsys.readouterr()
        assert ended.value.code == 0
        assert "key-0123456789abcdef" not in printed.out + printed.err
