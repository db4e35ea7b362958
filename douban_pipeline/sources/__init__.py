"""Outside sources as people look after them: their gates, and the archive of their answers."""
