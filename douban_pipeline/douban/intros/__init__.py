"""Introductions: a fact sheet, a text written from it by a language model, and the guard it has to pass."""
