-- Which themes have other names now; the keys of the tombstones, and until when anything is forgotten, null if nothing is;
-- what this login was granted.
SELECT opened.aliases, opened.keys, opened.until, opened.parts_until, opened.login, opened.may_write FROM hermes_gate() AS opened;
