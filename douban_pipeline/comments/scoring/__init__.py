"""Scoring of sections: reads columns from the tables, ranks by `heat`, stores changed scores and publishes lists."""
