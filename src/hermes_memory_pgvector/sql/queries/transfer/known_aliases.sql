-- Where do these names of themes lead?
SELECT old, new FROM theme_aliases WHERE old = ANY (%(olds)s::text[]);
