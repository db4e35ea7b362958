"""Introductions: a fact sheet, a text that a language model writes from it, and the guard that checks the text."""
