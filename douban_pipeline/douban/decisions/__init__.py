"""Rules of reviewers' decisions, asked when one is recorded and again when it is applied."""
