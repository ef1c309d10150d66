"""Libraries that take long to import, so that nothing imports them before it needs them."""

HEAVY = frozenset(
    {
        "torch",
        "transformers",
        "sentence_transformers",
        "sklearn",
        "scipy",
        "pandas",
        "numpy",
        "matplotlib",
        "lancedb",
        "pyarrow",
        "openai",
        "autogen_core",
        "autogen_agentchat",
        "autogen_ext",
        "httpx2",
    }
)
"""Names of their top-level modules."""
