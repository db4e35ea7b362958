"""Scores of sections: columns read from the tables, ranked by `heat`, stored in part and published whole."""
