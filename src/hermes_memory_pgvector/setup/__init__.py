"""What `up`, the wizard and the commands share when they set up a home: the plugin folder, the database, the login.

Comes in: a hermes home and what an operator asked for. Goes out: a working home, and sentences that say what was done.
"""
