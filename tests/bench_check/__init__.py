"""Whether a change made anything slower: the benchmarks that matter, of this tree and of a former commit, in turn."""
