"""Messages to people: chat robots, phones, e-mail, or any URL that accepts JSON."""
