"""All writes to the CMS: the change log, refusals of writes, reverts, history and drift."""
