"""The large fault battery, run by `make faults`: no test of the daily suite."""
