"""How others see a running agent: pages for probes, metrics and status."""
