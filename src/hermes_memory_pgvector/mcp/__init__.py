"""The memory for other agents, over the Model Context Protocol on standard input and output.

Comes in: calls of tools by whichever program speaks MCP. Goes out: what the provider's own tools answer, and memories
in the journal, all of one theme. The protocol's few messages are read and written here; no SDK is needed.
"""
