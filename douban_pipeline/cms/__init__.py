"""maccms 10 as it is: its tables by column name, how it writes values, its words for regions, languages and genres."""
