"""What another of this project's databases knows of the library's videos, as further evidence for the matcher."""
