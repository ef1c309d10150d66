"""The live viewer: pages over run folders that grow, served on loopback (docs/viewer.md)."""
