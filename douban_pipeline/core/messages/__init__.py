"""Messages to people: robots of chats, phones, e-mail, or any address that takes JSON."""
