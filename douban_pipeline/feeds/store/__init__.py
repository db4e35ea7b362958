"""The tables of the feeds system and what reads and writes them; nothing here decides."""
