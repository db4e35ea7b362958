"""Lists of any length as pages: rows in chunk files beside the page; filter, sort and paging by one shared script."""
