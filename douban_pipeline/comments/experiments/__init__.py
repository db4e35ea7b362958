"""Experiments with the order by heat: starting, evaluating and ending them."""
