-- Raises the number of rows compared exactly for a model whose bits select too roughly; never lowers it.
-- A login that was granted single themes changes nothing for others.
--
-- Runs with the owner's rights, so whoever calls it must not be able to choose what it means: the search_path has Postgres's
-- own catalog alone, and everything of ours is named with its schema.
CREATE OR REPLACE FUNCTION hermes_raise_candidates(model_id integer, needed integer) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    UPDATE {schema}.embedding_models SET candidates = least(25600, greatest(candidates, needed)) WHERE id = model_id
      AND NOT EXISTS (SELECT FROM {schema}.login_grants AS g WHERE g.login = session_user)
    $$;
