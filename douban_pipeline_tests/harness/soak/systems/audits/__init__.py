"""What must hold of each system after a soak: one module a system, pure reading of what was left and noted."""
