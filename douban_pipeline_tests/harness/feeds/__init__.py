"""Replaying real push times against polling policies, and fitting the model of when sources publish."""
