"""The tables of the digest system, and what is read and written in them."""
