"""What is measured, a module a group. Each measure runs in a process of its own and leaves the database as it was."""
