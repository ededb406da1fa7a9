"""What an operator can do with a memory: one folder per feature, each with its operations; `catalogue.py` lists them.

In: a memory and options. Out: an answer in one of the four shapes of `terminal/operation.py`; nothing here prints.
"""
