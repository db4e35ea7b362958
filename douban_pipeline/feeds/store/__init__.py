"""The tables of the feeds system and the code that reads and writes them; no decisions are made here."""
