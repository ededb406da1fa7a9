"""Known embedding models by name: dimension, prefixes, and how much text they take."""

from __future__ import annotations

import re
from typing import NamedTuple

from hermes_memory_pgvector.errors import ConfigError

DEFAULT_MAX_CHARS = 8_000
SHORT_CONTEXT_CHARS = 2_000
"""About 512 tokens of English: what the BERT-sized models can read."""


class ModelSpec(NamedTuple):
    """The facts about one model or family; `dim` is None when the name does not tell."""

    dim: int | None = None
    query_prefix: str = ""
    document_prefix: str = ""
    max_chars: int = DEFAULT_MAX_CHARS
    can_shorten: bool = False
    """Whether the endpoint takes a `dimensions` field for this model."""


LOCAL_MODEL = "wordllama-l2-supercat-256"

WORDLLAMA = ModelSpec(dim=256)

_BGE_QUERY = "Represent this sentence for searching relevant passages: "
_INSTRUCT_QUERY = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "


def _e5(dim: int) -> ModelSpec:
    return ModelSpec(dim, "query: ", "passage: ", SHORT_CONTEXT_CHARS)


def _bge(dim: int, query_prefix: str = _BGE_QUERY) -> ModelSpec:
    return ModelSpec(dim, query_prefix, "", SHORT_CONTEXT_CHARS)


# Matched in this order against the lower-case name without its organisation, the first match wins. A tag (":22m")
# counts as part of the name; ":latest" does not.
_KNOWN: tuple[tuple[str, ModelSpec], ...] = (
    (r"wordllama", WORDLLAMA),
    (r"nomic-embed-text", ModelSpec(768, "search_query: ", "search_document: ")),
    (r"text-embedding-3-small", ModelSpec(1536, can_shorten=True)),
    (r"text-embedding-3-large", ModelSpec(3072, can_shorten=True)),
    (r"text-embedding-ada-002", ModelSpec(1536)),
    (r"embeddinggemma", ModelSpec(768, "task: search result | query: ", "title: none | text: ")),
    (r"qwen3-embedding.*(?<![\d.])0[._]6b", ModelSpec(1024, _INSTRUCT_QUERY)),
    (r"qwen3-embedding.*(?<![\d.])4b", ModelSpec(2560, _INSTRUCT_QUERY)),
    (r"qwen3-embedding.*(?<![\d.])8b", ModelSpec(4096, _INSTRUCT_QUERY)),
    (r"qwen3-embedding", ModelSpec(None, _INSTRUCT_QUERY)),
    (r"e5-mistral-7b-instruct", ModelSpec(4096, _INSTRUCT_QUERY)),
    (
        r"multilingual-e5-large-instruct",
        ModelSpec(1024, _INSTRUCT_QUERY, max_chars=SHORT_CONTEXT_CHARS),
    ),
    (r"(?:^|[-_])e5-small", _e5(384)),
    (r"(?:^|[-_])e5-base", _e5(768)),
    (r"(?:^|[-_])e5-large", _e5(1024)),
    (r"bge-m3", ModelSpec(1024)),
    (r"bge-small-zh", _bge(512, "为这个句子生成表示以用于检索相关文章：")),
    (r"bge-base-zh", _bge(768, "为这个句子生成表示以用于检索相关文章：")),
    (r"bge-large-zh", _bge(1024, "为这个句子生成表示以用于检索相关文章：")),
    (r"bge-small", _bge(384)),
    (r"bge-base", _bge(768)),
    (r"bge-large", _bge(1024)),
    (r"mxbai-embed-large", _bge(1024)),
    (r"snowflake-arctic-embed-m-v2", ModelSpec(768, "query: ")),
    (r"snowflake-arctic-embed(?:2|-l-v2)", ModelSpec(1024, "query: ")),
    (
        r"snowflake-arctic-embed-m-long|snowflake-arctic-embed:(?:137m|m-long)",
        ModelSpec(768, _BGE_QUERY, max_chars=6_000),
    ),
    (r"snowflake-arctic-embed(?:-xs|-s(?!\w)|:22m|:33m|:xs|:s(?!\w))", _bge(384)),
    (r"snowflake-arctic-embed(?:-m|:110m|:m)", _bge(768)),
    (r"snowflake-arctic-embed", _bge(1024)),
    (r"all-minilm", ModelSpec(384, max_chars=SHORT_CONTEXT_CHARS // 2)),
    (r"all-mpnet-base", ModelSpec(768, max_chars=SHORT_CONTEXT_CHARS)),
)


def spec_with(model: str, prefixes: str) -> ModelSpec:
    """The facts about a model, with the prefixes of the setting where it names any; ConfigError where it is wrong."""
    spec = spec_of(model)
    if not prefixes.strip():
        return spec
    parts = [] if prefixes.strip() == "none" else [part.partition("=") for part in prefixes.split("|") if part.strip()]
    told = {name.strip(): value for name, sign, value in parts if sign}
    if len(told) != len(parts) or not told.keys() <= {"query", "document"}:
        raise ConfigError("embed_prefixes must be query=…|document=…|, none, or empty")
    return spec._replace(query_prefix=told.get("query", ""), document_prefix=told.get("document", ""))


def spec_of(model: str) -> ModelSpec:
    """The facts about a model of that name; an unknown model has no dimension, no prefixes and the defaults."""
    name = model.strip().lower().rsplit("/", 1)[-1].removesuffix(":latest")
    return next((spec for pattern, spec in _KNOWN if re.search(pattern, name)), ModelSpec())
