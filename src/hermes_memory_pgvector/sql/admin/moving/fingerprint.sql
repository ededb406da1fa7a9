-- how many rows each block of a table and each theme in it has, and the sum of their checksums
SELECT grouping(line.block) = 0, line.block, line.theme, count(*), sum(line.checksum)
FROM (SELECT {block} AS block, {theme} AS theme,
             ('x' || encode(substr(sha256(convert_to(ROW({columns})::text, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint AS checksum
      FROM {table}) AS line
GROUP BY GROUPING SETS ((line.block), (line.theme))
