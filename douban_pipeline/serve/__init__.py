"""The HTTP service for the pages and APIs of all systems, behind one login. Needs the extra ``service``."""
