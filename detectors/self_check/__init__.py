"""SelfCheckGPT: what a model would not say again when asked again is suspect."""
