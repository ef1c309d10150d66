"""A kit to test chatbots and detectors without a model server.

`scripted` answers requests in this process, under `scripted://` addresses. `endpoint` serves a model on
loopback to other processes. `tiny_pack` writes the smallest scenario pack.
"""
