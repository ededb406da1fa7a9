"""What words say: clean text, lexemes, stems, time phrases. Pure."""
