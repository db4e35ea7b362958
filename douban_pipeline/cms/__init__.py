"""The CMS (maccms 10): its tables, its value formats, and its vocabulary of regions, languages and genres."""
