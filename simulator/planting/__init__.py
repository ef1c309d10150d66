"""Errors planted into clean replies, each with its clean twin, to test detectors."""
