"""Measuring the digest."""
