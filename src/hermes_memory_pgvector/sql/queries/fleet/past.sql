-- What processes have counted whose rows are gone, home by home.
SELECT past.home_id, past.processes, past.counters FROM past_processes AS past ORDER BY past.home_id;
