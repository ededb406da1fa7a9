"""How operations meet people and programs: declared once, they become commands, JSON and routes of the page.

In: operations (`operation.py`) and what somebody typed or asked. Out: text that fits its reader (`render.py`), JSON, an
exit code or a status. Knows nothing of memory: no settings, no database, no files but the streams it writes to.
"""
