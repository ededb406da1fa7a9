"""Looking after the memory: what operators see, explain, correct and erase.

In: a connection of the runtime role, and what somebody asks for. Out: frozen values that say what is there, or what was
changed; whoever changes something leaves a row in the audit log, in the same transaction. Commands and pages show these
values and add nothing to them.
"""
