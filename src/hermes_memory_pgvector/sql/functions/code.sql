-- The code of a unit vector, as the column `code` of its table holds it: which of a few ranges each number lies in.
CREATE OR REPLACE FUNCTION hermes_code(vector halfvec) RETURNS bit varying
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT
    AS $$
DECLARE
    dim   CONSTANT integer := vector_dims(vector);
    bound double precision;
    code  bit varying := B'';
BEGIN
    FOREACH bound IN ARRAY hermes_code_bounds(dim) LOOP
        code := code || binary_quantize(vector - array_fill(bound / sqrt(dim), ARRAY[dim])::halfvec);
    END LOOP;
    RETURN code;
END $$;
