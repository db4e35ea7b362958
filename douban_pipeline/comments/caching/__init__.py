"""What spares the database: lists in Redis, copies in the process, one rebuild a list.

None of it is believed about whether a comment is shown: that is asked of the database.
"""
