"""Comment system beside the CMS's own comments: sections, threads, votes, moderation, and explainable ranking."""
