"""Generated sections of comments, and how fast they are scored."""
