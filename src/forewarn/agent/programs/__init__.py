"""The programs that handlers run, which outlive the agent, and what they print."""
