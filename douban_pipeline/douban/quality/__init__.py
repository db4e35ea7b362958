"""How good links are: the library judged again without a request, and people's decisions counted.

Everything that is judged again is a `Case` of the chain, so that there is one way to feed the judge: `stored_verdicts`
reads those of the library from archived answers, and `library_replay` counts what other rules would change. `rates`
counts what people said of automatic links (`labels`); `figures` is what Dagster shows. Labelled records are judged
beside the tests (`make evaluate`).
"""
