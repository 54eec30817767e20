"""The weights of quick learned plans that `search` begins with (:mod:`ces_core.learned.start`)."""
