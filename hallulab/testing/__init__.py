"""A kit to test chatbots, detectors and commands without a model server.

`scripted` answers requests in this process, under `scripted://` addresses. `endpoint` serves a model on
loopback that answers at once, `batch_api` one that has batches, too, and `faulty_endpoint` one that fails in
every way that servers fail. `tiny_pack` writes the smallest scenario pack. `kill_points` kills a run at many
places, resumes it, and compares what the journals hold.
"""
