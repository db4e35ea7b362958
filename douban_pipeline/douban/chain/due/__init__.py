"""When a video is looked at: intake of the library, frequency tiers, and what is due."""
