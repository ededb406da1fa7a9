-- Tables that only a distributed database has; they hold nothing of anybody.
--
-- One row in every shard: a statement that joins it runs once on each of them.
CREATE TABLE IF NOT EXISTS shard_anchors (
    agent_identity text   PRIMARY KEY,
    shard_id       bigint NOT NULL
);
-- Which row that is, for the coordinator: the shard of conversations, and the key that leads to its anchor.
CREATE TABLE IF NOT EXISTS shard_keys (
    shard_id bigint PRIMARY KEY,
    key      text   NOT NULL UNIQUE
);
-- How common a lexeme is among the rows of one shard, as lexeme_statistics says of all rows elsewhere.
CREATE TABLE IF NOT EXISTS shard_lexemes (
    agent_identity text NOT NULL,
    source         text NOT NULL,
    lexeme         text NOT NULL,
    fraction       real NOT NULL,
    PRIMARY KEY (agent_identity, source, lexeme) INCLUDE (fraction)
);
