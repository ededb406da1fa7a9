"""The memory for other agents, over the Model Context Protocol.

Comes in: calls of tools by whichever program speaks MCP. Goes out: what recall finds, and memory operations in the
journal, all of one theme. Only this room knows the `mcp` SDK, which is an extra.
"""
