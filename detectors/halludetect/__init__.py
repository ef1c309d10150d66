"""HalluDetect: analysis by self-consistency, severity filter, aggregation."""
