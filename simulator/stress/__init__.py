"""Chatbots and detectors under pressure: errors planted into replies that are right."""
