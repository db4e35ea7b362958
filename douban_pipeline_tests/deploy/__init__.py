"""What an installation is made of, and whether it holds together."""
