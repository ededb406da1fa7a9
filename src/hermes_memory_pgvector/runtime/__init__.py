"""One engine per process and home: opens the parts in the right order, shares them, closes them.

Comes in: a home and its settings. Goes out: `record` for writes, `search` for questions, and a status file.
"""
