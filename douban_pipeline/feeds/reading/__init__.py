"""Reading what sources published: articles made safe to show, and the pages for it."""
