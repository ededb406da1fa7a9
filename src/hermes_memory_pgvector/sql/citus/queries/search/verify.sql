-- Nothing: what compares searches with brute force runs on workers alone, where nobody asks for it.
--
-- theme; samples; candidates.
SELECT NULL::real WHERE %(theme)s::text IS NULL AND %(samples)s::integer < 0 AND %(candidates)s::integer < 0;
