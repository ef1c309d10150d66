"""What has to be on this machine: downloads, weights, environments, a cache, processes that end with us."""
