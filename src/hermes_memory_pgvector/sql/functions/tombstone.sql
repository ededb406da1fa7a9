-- The keyed hash of a forgotten text: 16 bytes that tell whoever has the text, and the key, that it is the same one.
--
-- parts: what kind of thing it is, where it belongs, and the words. store.tombstones.keyed_hash computes the same.
CREATE OR REPLACE FUNCTION hermes_tombstone(key bytea, parts text[]) RETURNS bytea
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT pg_catalog.substr(pg_catalog.sha256(key || pg_catalog.sha256(
        key || pg_catalog.convert_to(pg_catalog.array_to_string(parts, E'\x1f'), 'UTF8'))), 1, 16)
    $$;
