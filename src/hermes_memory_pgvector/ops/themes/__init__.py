"""Themes: one becomes another."""
