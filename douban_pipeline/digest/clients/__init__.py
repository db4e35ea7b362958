"""Clients of the digest's sources other than WeRSS."""
