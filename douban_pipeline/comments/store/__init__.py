"""The tables of the comment system, and what is read and written in them."""
