"""Videos that wait for a person: the ordered queue, its table for the UI, and the review sheet."""
