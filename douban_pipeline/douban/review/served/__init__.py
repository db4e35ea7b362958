"""The review sheet as the service offers it: claimed cards, jobs that it launches, and what came of decisions."""
