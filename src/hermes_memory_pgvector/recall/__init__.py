"""Question to hits to text.

Comes in: a prompt or a tool call. Goes out: a short block for the prompt, or JSON for the model.
"""
