"""`forewarn gate`: a command of the operator's that runs once the guests are ready for it."""
