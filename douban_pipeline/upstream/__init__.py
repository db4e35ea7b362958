"""Ground floor: everything that leaves the machine, paced by one gate and kept in one archive."""
