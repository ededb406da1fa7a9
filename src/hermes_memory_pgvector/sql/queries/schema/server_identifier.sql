-- Which server is this? A standby has the identifier of its primary.
SELECT system_identifier::text FROM pg_catalog.pg_control_system();
