"""Recording of people's decisions: checked against the library and each other, and stored."""
