"""Messages of the digest: an outbox that a slot writes in its transaction, and the sender that empties it."""
