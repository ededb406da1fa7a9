"""Moving in and moving out: pasts that other programs keep, and everything that is stored here.

In: the host's state.db and files, other memories' exports, a file of our own. Out: write items for the store, each
once, with its original time; or one line of JSON per row.
"""
