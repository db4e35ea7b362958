"""The command ``init``: from a database's address to the first proposals, asking what only the site's owner knows."""
