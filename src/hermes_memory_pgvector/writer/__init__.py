"""Journal to rows to vectors.

Comes in: records of this process's journal and of those that dead processes left. Goes out: committed batches, dead
letters, and vectors for the rows that wait for one.
"""
