"""The cluster as it was: kept whole from time to time, and replayed event by event from there."""
