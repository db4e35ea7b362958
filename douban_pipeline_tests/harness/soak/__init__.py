"""A library that lives for half an hour, with everything going wrong that can, and an audit at the end."""
