"""The feeds system's part of the HTTP service: pages for people, and the APIs of their phones' readers."""
