"""Stress tests of detectors: errors planted into replies that are right."""
