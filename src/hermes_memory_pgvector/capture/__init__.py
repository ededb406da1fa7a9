"""Host events become write items.

Comes in: what hermes reports: a turn, a transcript, an undo, a memory write, a finished subagent. Goes out: frozen
write items for the journal. Writes that the journal has no room for wait here until it has.
"""
