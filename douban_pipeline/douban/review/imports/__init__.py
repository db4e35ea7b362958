"""Export of the queue as a spreadsheet, and import of the filled-in file as decisions."""
