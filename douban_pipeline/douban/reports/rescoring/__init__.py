"""What other rules would have said: the library judged again from archived answers, without any request."""
