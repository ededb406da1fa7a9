-- Works out anew what the planner knows of the words in the tables.
SELECT hermes_analyze();
