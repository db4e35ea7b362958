"""Tables of the comment system, and the queries that read and write them."""
