"""Stress tests: errors planted into right replies for detectors, wrong documents for chatbots."""
