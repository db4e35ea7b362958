"""Reports for people: lists, health, precision, and the library judged again under other rules."""
