"""Ground floor: the CMS's tables, our own tables beside them, and the only door for writes."""
