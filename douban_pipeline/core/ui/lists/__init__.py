"""Lists of any length as pages: rows in pieces beside the page; filter, sort and paging by one script for all."""
