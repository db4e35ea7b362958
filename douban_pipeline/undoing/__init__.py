"""Undoing: taking writes back, telling a video's history, and noticing what others wrote over our writes."""
