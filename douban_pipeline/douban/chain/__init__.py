"""From due videos to synced fields: what is due, candidates and verdicts, ids and fields."""
