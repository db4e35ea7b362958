"""How good links are: labelled records and the library judged again without a request, and people's decisions counted.

Everything that is judged again is a `Case` of the chain, so that there is one way to feed the judge: `labelled_replay`
judges labelled records, with a corpus in place of the network; `stored_verdicts` reads those of the library
from archived answers, and `library_replay` counts what other rules would change.

`metrics` counts labelled records, `rates` what people said of automatic links (`labels`). `report`, as a page and in
`terminal`, is what `douban-pipeline evaluate` says; `figures` is what Dagster shows.
"""
