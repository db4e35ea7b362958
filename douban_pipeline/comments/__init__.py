"""Comments beside the CMS's own: sections, threads, votes, moderation, and an order that explains itself."""
