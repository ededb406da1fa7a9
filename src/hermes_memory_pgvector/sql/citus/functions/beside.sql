-- On a worker: the name of another table's shard with the same themes as this shard has; a reference table has one for all.
CREATE OR REPLACE FUNCTION hermes_beside(shard text, wanted text) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT format('%I.%I', {schema_name}, wanted || '_' || other.shardid)
    FROM pg_dist_shard AS own
    JOIN pg_dist_shard AS other
      ON other.logicalrelid = format('%I.%I', {schema_name}, wanted)::regclass
     AND (other.shardminvalue IS NULL OR other.shardminvalue = own.shardminvalue)
    WHERE own.shardid = substring(shard FROM '[0-9]+$')::bigint
    $$;
