-- lets what follows change distributed tables within one transaction; our triggers touch their own shard alone
SELECT set_config('citus.multi_shard_modify_mode', 'sequential', true),
       set_config('citus.enable_unsafe_triggers', 'on', true),
       set_config('citus.propagate_set_commands', 'local', true)
