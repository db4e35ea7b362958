"""From a subject to the CMS: which columns are written, by which policy, and the writing itself."""
