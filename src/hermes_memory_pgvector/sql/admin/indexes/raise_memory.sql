-- lets this session build an index in so many kilobytes, unless it already has more
SELECT set_config('maintenance_work_mem', greatest(%s, pg_size_bytes(current_setting('maintenance_work_mem')) / 1024)
                                          || 'kB', false)
