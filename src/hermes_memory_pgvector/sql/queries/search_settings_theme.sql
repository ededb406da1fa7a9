-- Keeps the search of a theme on the theme's part of an index, for this transaction, also when one theme is nearly all.
--
-- Compiling a statement that runs for milliseconds never pays off.
SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true);
