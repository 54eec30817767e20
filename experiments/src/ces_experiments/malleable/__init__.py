"""Experiments on malleable jobs: deadlines kept by ElasticFlow, EdgeFlow and their peers."""
