"""The review sheet as a service: claims of cards, launches of jobs, and the outcomes of decisions."""
