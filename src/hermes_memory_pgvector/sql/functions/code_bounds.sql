-- Where the ranges of a unit vector's numbers meet that its code tells apart, in units of one over the root of their
-- count; few dimensions need more of them.
CREATE OR REPLACE FUNCTION hermes_code_bounds(dim integer) RETURNS double precision[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT CASE WHEN dim <= 384 THEN ARRAY[-0.9, -0.3, 0.3, 0.9]
                WHEN dim <= 2048 THEN ARRAY[-0.4, 0.4]
                ELSE ARRAY[0.0] END::double precision[]
    $$;
