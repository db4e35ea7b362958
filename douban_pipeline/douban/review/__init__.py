"""Where people come in: the queue of doubtful videos, their decisions, and taking writes back."""
