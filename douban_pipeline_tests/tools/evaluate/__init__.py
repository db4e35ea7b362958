"""`make evaluate`: measures the matcher on labelled records, with a corpus in place of the network.

`labelled_rows` reads the files, `labelled_replay` judges each row as a `Case` of the chain, with `local_sources` as
search and as Douban. `metrics` counts, `comparison` compares two runs, `report` is what is said of them, as a page
(`report_html`) and in the `terminal`; `command` does it in order, `options` are its options.
"""
