"""An invented library of any size, and the subjects that Douban has of it. Nothing in it exists."""
