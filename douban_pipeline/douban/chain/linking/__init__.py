"""From a video to its subject: candidates from outside, verdicts from within."""
