"""What people read, whichever system it comes from: tables, pages, plots, report files, links into launchpads."""
