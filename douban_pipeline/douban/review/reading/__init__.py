"""What waits for a person: the queue in its order, its table for the UI, and the review sheet."""
