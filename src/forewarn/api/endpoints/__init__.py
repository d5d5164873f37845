"""The endpoints, a module for each noun: what each takes, asks of control, and answers with."""
