"""`forewarn gate`: run an operator's command once the guests are ready."""
