"""Make a scenario pack of tau-Knowledge, the documents and customers of tau2-bench, by rules alone.

Source: https://github.com/sierra-research/tau2-bench, domain `banking_knowledge`.
"""
