"""Review by people: the queue of doubtful videos, and recording decisions about them."""
