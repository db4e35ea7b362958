"""One module a tab: what people are shown, put together from what was found. Nothing is read here."""
