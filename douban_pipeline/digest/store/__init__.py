"""The tables of the digest system, and the code that reads and writes them."""
