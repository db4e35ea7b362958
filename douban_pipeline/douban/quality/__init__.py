"""How good links are: labelled records and the library judged again without a request, and people's decisions counted.

`labelled_replay` runs labelled records through the production path, with a corpus in place of the network;
`library_replay` judges stored verdicts again from archived answers; `labels` are what people said of automatic links.
All three are counted by `rates`; the command's report is `report`, what Dagster shows is `figures`.
"""
