"""From a video to its subject: candidates from outside sources, and verdicts on them."""
