"""Text without a database: cleaning, names, lexemes, stems, time phrases. Pure.

Comes in: any text. Goes out: text that can be stored, and the lexemes and periods it is found by.
"""
