"""The lane of people's decisions: applied at once, whatever else runs."""
