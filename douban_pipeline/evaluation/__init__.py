"""Measuring the matcher on labelled records, with the production path over a local index instead of the network."""
