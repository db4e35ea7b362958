"""Messages of the digest: an outbox, written in a slot's transaction, and the sender that delivers its rows."""
