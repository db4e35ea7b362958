"""The lists that people work through, each with all its rows: as a page, as a CSV file, and on the command line."""
