-- Whoever has a login of its own writes its own rows, and may write anything there: what others add up are numbers.
ALTER TABLE agent_processes
    ADD CONSTRAINT agent_processes_state_check CHECK (jsonb_typeof(state) = 'object'),
    ADD CONSTRAINT agent_processes_counters_check CHECK (
        jsonb_typeof(counters) = 'object' AND NOT jsonb_path_exists(counters, '$.* ? (@.type() != "number")'));
ALTER TABLE past_processes
    ADD CONSTRAINT past_processes_counters_check CHECK (
        jsonb_typeof(counters) = 'object' AND NOT jsonb_path_exists(counters, '$.* ? (@.type() != "number")'));
