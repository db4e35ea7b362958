"""The CMS (maccms 10): its tables by column name, its value formats, its words for regions, languages and genres."""
