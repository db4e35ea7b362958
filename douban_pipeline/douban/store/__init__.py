"""Our own tables beside the CMS's: state of videos, tasks, verdicts, decisions, and their migrations."""
