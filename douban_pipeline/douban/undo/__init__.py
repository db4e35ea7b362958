"""What people see of past writes and take back: reverts, a video's history, drift between log and CMS."""
