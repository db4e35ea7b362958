"""The one HTTP service: what systems offer to people and programs, behind one login. Needs the extra ``service``."""
