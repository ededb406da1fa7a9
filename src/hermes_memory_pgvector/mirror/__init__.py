"""MEMORY.md and USER.md, kept equal to the rows that came from them.

Comes in: the files of one home. Goes out: memory operations for what changed without a hook.
"""
