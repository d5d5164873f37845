"""Who may call: tokens, sessions of browsers, and answers that are given once."""
