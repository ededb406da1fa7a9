"""What a model wants before questions and texts: said once, kept with the model, and the same for all homes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hermes_memory_pgvector.embedding.base import ModelInfo
from hermes_memory_pgvector.values import EmbeddingModel
from hermes_memory_pgvector.writer.embed_pending import mismatch
from testing.agent import AgentHome
from testing.embed_server import EmbedServer
from testing.postgres import DIM, MODEL
from testing.waiting import wait_until


@pytest.fixture
def embedder() -> Iterator[EmbedServer]:
    with EmbedServer(dim=DIM) as server:
        yield server


def test_prefixes_of_the_setting_are_sent_and_kept_with_the_model(agent_home: AgentHome, embedder: EmbedServer) -> None:
    told = {"embed_url": embedder.url, "embed_model": MODEL, "embed_prefixes": "query=ask: |document=kept: |"}
    agent_home.settings |= {**told, "embed_on_write": True}
    agent_home.provider("marketing").on_memory_write("add", "memory", "The zebra lives in the north")
    agent_home.settle()
    kept = "SELECT query_prefix, document_prefix FROM embedding_models WHERE is_current"
    wait_until(lambda: agent_home.stored.rows(kept) == [("ask: ", "kept: ")])
    wait_until(lambda: "kept: The zebra lives in the north" in embedder.texts)
    agent_home.provider("marketing").handle_tool_call("recall_memory", {"query": "zebra"})
    assert "ask: zebra" in embedder.texts


def test_a_home_with_other_prefixes_is_told() -> None:
    model = EmbeddingModel(1, "m", 8, query_prefix="ask: ", document_prefix="")
    assert mismatch(model, ModelInfo("m", 8, "openai", "ask: ", "")) == ""
    assert "set embed_prefixes" in mismatch(model, ModelInfo("m", 8, "openai", "", ""))
    assert mismatch(EmbeddingModel(1, "m", 8), ModelInfo("m", 8, "openai", "", "")) == ""
