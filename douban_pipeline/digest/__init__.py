"""The daily digest: articles in five slots a day, each analysed once; findings, and one report guaranteed to be
sent."""
