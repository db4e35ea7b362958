"""The daily digest: articles in five slots a day, analysed once each, findings and one report that always arrives."""
