"""Evaluates the matcher on labelled records: the production path over a local index instead of the network."""
