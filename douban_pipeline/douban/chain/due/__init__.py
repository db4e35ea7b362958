"""When a video is visited: intake of the library, frequency tiers, and the selection of due videos."""
