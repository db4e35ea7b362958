"""Recording what people decide: rows as typed, checked against the library and each other, and stored."""
