"""How often automation is right, by what people decide, and holding back what is not right often enough."""
