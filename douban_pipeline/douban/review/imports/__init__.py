"""The queue as a spreadsheet that is filled in, and read back as decisions."""
