-- What the clock says by which heartbeats are told.
SELECT now();
