"""The public ElasticFlow simulator as it decides and counts, its quirks included: to compare with what it publishes.

Facts were read from its source (github.com/pkusys/ElasticFlow at 04a0109); the code is not taken from there.
"""
