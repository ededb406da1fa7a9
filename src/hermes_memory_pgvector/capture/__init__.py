"""Host events become write items.

Comes in: what hermes says happened: a turn, a transcript, an undo, a memory write, a delegation. Goes out: frozen
write items for the journal. Nothing here waits, opens a file of ours or speaks SQL.
"""
