"""Ways to what the digest reads beside WeRSS."""
