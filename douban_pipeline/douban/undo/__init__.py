"""What people see of past writes and revert: reverts, a video's history, drift between log and CMS."""
