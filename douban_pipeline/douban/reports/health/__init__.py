"""How the pipeline is: what is measured every few minutes, what is drawn and warned of, and who is alerted."""
