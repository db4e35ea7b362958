"""What people do about the order of heat."""
