-- vectors go with the row that they are of
ALTER TABLE {vectors} ADD FOREIGN KEY (agent_identity, id) REFERENCES {rows} (agent_identity, id) ON DELETE CASCADE
