"""What hermes' own settings do to the memory is told from its config.yaml alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_memory_pgvector.ops.setup import kept_out

ON = "memory: {provider: pgvector}\n"
CASES = {
    "nothing": (ON, []),
    "no provider": ("memory: {}\n", [True]),
    "another provider": ("memory: {provider: mem0}\n", [True]),
    "a plugin that an update has disabled": (f"{ON}plugins: {{disabled: [pgvector]}}\n", [True]),
    "other plugins": (f"{ON}plugins: {{disabled: [other]}}\n", []),
    "a disabled toolset": (f"{ON}agent: {{disabled_toolsets: [web, memory]}}\n", [False]),
    "a platform without it": (f"{ON}platform_toolsets: {{cli: [web], telegram: [memory, web]}}\n", [False]),
    "a bundle has it": (f"{ON}platform_toolsets: {{cli: [hermes-cli, spotify]}}\n", []),
    "everything": (f'{ON}platform_toolsets: {{cli: [web, all], slack: ["*"], telegram: [coding]}}\n', []),
    "a bundle without it": (f"{ON}platform_toolsets: {{webhook: [hermes-webhook]}}\n", [False]),
    "values of other kinds": (
        f"{ON}agent: [x]\nplatform_toolsets: {{cli: all}}\nplugins: {{disabled: pgvector}}\n",
        [],
    ),
    "no YAML": ("memory: [\n", [True]),
}


@pytest.mark.parametrize(("config", "expected"), CASES.values(), ids=CASES)
def test_each_setting_that_keeps_the_memory_out_is_named(tmp_path: Path, config: str, expected: list[bool]) -> None:
    (tmp_path / "config.yaml").write_text(config, encoding="utf-8")
    found = list(kept_out.reasons(tmp_path))
    assert [each.is_off for each in found] == expected
    assert all(each.reason for each in found)


def test_platforms_are_named(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"{ON}platform_toolsets: {{slack: [web], cli: []}}\n", encoding="utf-8")
    (only,) = kept_out.reasons(tmp_path)
    assert "for cli, slack" in only.reason
