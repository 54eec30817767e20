"""Proof that a change of the code changes no answer: what one commit answers is recorded and compared bit for bit.

``python -m equivalence record FOLDER`` writes questions and answers, ``check FOLDER`` asks the same questions again and
compares, ``compare COMMIT`` has the recorder of another commit record first and compares decision times too
(``make unchanged BASE=COMMIT``). A record consists of ``manifest.json`` and one gzipped file of JSON lines for each
part: placements, checks, queues, reroutes, networks, training.

Solvers are asked without a time limit while the clock stands still (:mod:`equivalence.clock`), so that no answer
depends on the machine's speed. Only the ``*_adapter`` modules import code of the project: what is renamed there leaves
the format as it is. Solvers that were renamed since a record was made are listed in ``renamed.json`` (old name to new).
"""
