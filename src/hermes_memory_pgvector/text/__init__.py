"""Text without a database: cleaning, names, words, time phrases. Pure.

Comes in: any text. Goes out: text that can be stored, and what the words of a question tell.
"""
