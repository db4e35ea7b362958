"""Experiments with the order of heat: started, evaluated and ended by people."""
